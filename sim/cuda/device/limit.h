/* Limits of a context: some take memory of the device. */
#ifndef BH_SIM_CUDA_DEVICE_LIMIT_H
#define BH_SIM_CUDA_DEVICE_LIMIT_H

#include "sim/cuda/cuda.h"

/* The limits of a new context; what they need is part of its overhead. */
void sim_limits_init(size_t limit[SIM_CUDA_LIMITS]);

/* The context ends: give back what they took.  Under sim_memory_lock(). */
void sim_limits_drop(struct CUctx_st *context);

/* Set a limit on a device of `sms` multiprocessors.  UNSUPPORTED_LIMIT; INVALID_VALUE: more
 * than it can be; OUT_OF_MEMORY, and it is as before. */
CUresult sim_limit_set(struct CUctx_st *context, uint32_t sms, CUlimit limit, size_t value);

/* UNSUPPORTED_LIMIT. */
CUresult sim_limit_get(const struct CUctx_st *context, CUlimit limit, size_t *ret_value);

#endif
