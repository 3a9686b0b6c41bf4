/* What the null driver's files share. */
#ifndef BH_SHIM_NULL_DRIVER_H
#define BH_SHIM_NULL_DRIVER_H

#include <stdbool.h>

#pragma GCC visibility push(default)
#include "bulkhead/cuda_abi.h"
#pragma GCC visibility pop
#include "shim/null_world.h"

struct CUgraph_st {
    uint64_t bytes;
};
struct CUgraphExec_st {
    uint64_t bytes;
    bool there;
};
struct CUevent_st {
    uint64_t done_ns;
};
struct CUstream_st {
    CUgraph captured;
};

extern struct null_world *bh_null_world;
extern bool bh_null_shared; /* a test watches */

uint64_t bh_null_now_ns(void);

void bh_null_pools_waited(void);

/* Of a graph's allocations: its low bits are the size. */
#define NULL_GRAPH_BASE (UINT64_C(1) << 47)

/* Memory of graphs: taken at a first launch, kept until it is trimmed. */
void bh_null_graph_take(uint64_t bytes);
void bh_null_graph_unused(uint64_t bytes);

#endif
