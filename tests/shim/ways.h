/* Every way to get memory of a device, as programs do it: each takes 64 MiB at a time, or a
 * batch of small allocations. */
#ifndef BH_SHIM_WAYS_H
#define BH_SHIM_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead/cuda_abi.h"

struct bh_way {
    const char *name;
    CUresult (*get)(uint64_t *ret_what);
    CUresult (*drop)(uint64_t what);
    uint32_t units; /* that one takes; 0: not known */
    bool null_only; /* the simulated driver has no such call, or wants a real descriptor */
};

extern const struct bh_way bh_ways[];
extern const size_t bh_way_count;

#endif
