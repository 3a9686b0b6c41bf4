/* What a call does to memory: a value, run in the order of its stream. */
#ifndef BH_SIM_CUDA_MEMORY_OPERATION_H
#define BH_SIM_CUDA_MEMORY_OPERATION_H

#include "sim/cuda/cuda.h"

enum sim_operation_kind {
    SIM_OPERATION_FILL, /* `count` times `width` bytes of `value` */
    SIM_OPERATION_COPY,
    SIM_OPERATION_FREE, /* target */
};

struct sim_operation {
    enum sim_operation_kind kind;
    unsigned width; /* 1, 2 or 4 */
    uint32_t value;
    uint64_t target, source; /* device addresses, or the host's */
    size_t count;            /* bytes of a copy; elements of a fill */
};

/* Do it now.  INVALID_VALUE: an address is no memory, or a range leaves its allocation. */
CUresult sim_operation_run(const struct sim_operation *operation);

/* Would it run?  The checks of sim_operation_run() alone, for the call itself to answer. */
CUresult sim_operation_check(const struct sim_operation *operation);

#endif
