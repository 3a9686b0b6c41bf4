/* What the null driver's files share. */
#ifndef BH_SIM_NULL_DRIVER_H
#define BH_SIM_NULL_DRIVER_H

#include <stdbool.h>

#pragma GCC visibility push(default)
#include "bulkhead/cuda_abi.h"
#pragma GCC visibility pop
#include "sim/null/held.h"
#include "sim/null/world.h"

/* A call that does no more than this, and goes well. */
#define ANSWER(name, parameters, ...)                                                                        \
    CUresult name parameters                                                                                 \
    {                                                                                                        \
        __VA_ARGS__;                                                                                         \
        return CUDA_SUCCESS;                                                                                 \
    }

struct CUctx_st {
    int device;
    bool primary, alive;
    uint64_t code; /* bytes of its modules */
};
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

/* A call waited for the device: pools give back what is beyond their threshold. */
void bh_null_pools_waited(void);

/* This process's contexts, green ones aside. */
extern struct CUctx_st *bh_null_contexts[];
extern unsigned bh_null_context_count;

/* Of a graph's allocations: its low bits are the size. */
#define NULL_GRAPH_BASE (UINT64_C(1) << 47)

/* Memory of graphs: taken at a first launch, kept until it is trimmed. */
void bh_null_graph_take(uint64_t bytes);

#endif
