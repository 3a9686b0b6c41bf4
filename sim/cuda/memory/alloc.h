/* Allocations of device memory: one after another, or parts of chunks. */
#ifndef BH_SIM_CUDA_MEMORY_ALLOC_H
#define BH_SIM_CUDA_MEMORY_ALLOC_H

#include "sim/cuda/memory/space.h"

/* An allocation, by any address in it. */
struct sim_range {
    struct sim_region *region;
    uint64_t start;
    size_t bytes; /* as asked for */
};

/* Under the lock.  From SIM_CUDA_WHOLE bytes on an allocation has pages of its own; smaller
 * ones lie together in chunks.  OUT_OF_MEMORY. */
#define SIM_CUDA_WHOLE ((size_t)1 << 20)
CUresult sim_alloc(struct CUctx_st *context, size_t bytes, bool low, uint64_t *ret_address);

/* Free what begins there, of whatever kind cuMemFree takes.  INVALID_VALUE. */
CUresult sim_alloc_free(uint64_t address);

/* The allocation that holds the address; false: there is none. */
bool sim_alloc_find(uint64_t address, struct sim_range *ret_range);

/* Free all of a context. */
void sim_alloc_drop(struct CUctx_st *context);

#endif
