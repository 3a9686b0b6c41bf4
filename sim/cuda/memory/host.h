/* Pinned memory of the machine: allocated, or registered. */
#ifndef BH_SIM_CUDA_MEMORY_HOST_H
#define BH_SIM_CUDA_MEMORY_HOST_H

#include "sim/cuda/cuda.h"

struct sim_pinned {
    uint64_t address, id;
    size_t bytes;
    unsigned flags;
    bool registered; /* the program's own memory */
    struct CUctx_st *context;
};

/* Under the lock.  The pinned range that holds the address, or NULL. */
const struct sim_pinned *sim_host_find(uint64_t address);

/* Free what a context allocated, and forget what it registered. */
void sim_host_drop(struct CUctx_st *context);

#endif
