/* The table of contexts, and each thread's stack of them: for the calls that make and end
 * contexts (sim/cuda/device/context.c).  What all others ask is in sim/cuda/cuda.h. */
#ifndef BH_SIM_CUDA_DEVICE_CONTEXTS_H
#define BH_SIM_CUDA_DEVICE_CONTEXTS_H

#include "sim/cuda/cuda.h"

/* Taken before sim_memory_lock(). */
void sim_contexts_lock(void);
void sim_contexts_unlock(void);

/* ---- under the lock ---- */

/* The primary context of a device; NULL: it has none, or there is no such device. */
struct CUctx_st *sim_contexts_primary(CUdevice device);

/* A new context, held once.  As sim_cuda_device(); OUT_OF_MEMORY; OPERATING_SYSTEM. */
CUresult sim_contexts_new(CUdevice number, bool primary, struct CUctx_st **ret_context);

/* Whether its device has no other. */
bool sim_contexts_is_last(const struct CUctx_st *context);

/* Its handle is invalid from now on. */
void sim_contexts_close(struct CUctx_st *context);

/* Give back what the driver itself needed for it.  Also under sim_memory_lock(). */
void sim_contexts_release(struct CUctx_st *context);

/* ---- the calling thread's stack ---- */

bool sim_contexts_is_full(void);

/* OUT_OF_MEMORY: it is full. */
CUresult sim_contexts_push(struct CUctx_st *context);

/* What lies on top, and no longer after pop.  NULL: it is empty. */
struct CUctx_st *sim_contexts_pop(void);
struct CUctx_st *sim_contexts_top(void);

#endif
