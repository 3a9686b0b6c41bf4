/* Arrays, with or without memory of their own. */
#ifndef BH_SIM_CUDA_MEMORY_ARRAY_H
#define BH_SIM_CUDA_MEMORY_ARRAY_H

#include "sim/cuda/cuda.h"

/* Under the lock: forget the arrays of a context. */
void sim_array_drop(struct CUctx_st *context);

#endif
