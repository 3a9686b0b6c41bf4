/* Limits of a context: some take memory of the device. */
#ifndef BH_SIM_CUDA_DEVICE_LIMIT_H
#define BH_SIM_CUDA_DEVICE_LIMIT_H

#include "sim/cuda/cuda.h"

/* The limits of a new context; what they need is part of its overhead. */
void sim_limits_init(size_t limit[SIM_CUDA_LIMITS]);

#endif
