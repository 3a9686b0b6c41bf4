/* Limits of a context: some take memory of the device. */
#ifndef BH_SIMDRV_CUDA_LIMIT_H
#define BH_SIMDRV_CUDA_LIMIT_H

#include "simdrv/cuda.h"

/* The limits of a new context; what they need is part of its overhead. */
void sim_limits_init(size_t limit[SIM_CUDA_LIMITS]);

#endif
