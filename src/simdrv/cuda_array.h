/* Arrays, with or without memory of their own. */
#ifndef BH_SIMDRV_CUDA_ARRAY_H
#define BH_SIMDRV_CUDA_ARRAY_H

#include "simdrv/cuda.h"

/* Under the lock: forget the arrays of a context. */
void sim_array_drop(struct CUctx_st *context);

#endif
