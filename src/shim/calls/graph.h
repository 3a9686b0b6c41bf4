/* Memory of graphs: known when nodes are added, there when a graph is launched. */
#ifndef BH_SHIM_CALLS_GRAPH_H
#define BH_SHIM_CALLS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "bulkhead/share_page.h"
#include "shim/process/abi.h"

/* At the first join. */
void bh_graphs_init(void);

/* A node of this graph allocates so much, in whole units. */
void bh_graph_add(CUgraph graph, unsigned device, uint64_t grains);

/* No graph of this process allocates memory. */
bool bh_graph_is_simple(void);

/* Around a call that may bring an executable graph's memory.  begin: OUT_OF_MEMORY before
 * anything happened, and then no end. */
struct bh_graph_call {
    uint32_t begun; /* a bit for each device */
    uint64_t grains[BH_SHARE_DEVICES_MAX], era;
};
CUresult bh_graph_begin(CUgraphExec exec, struct bh_graph_call *ret_call);
void bh_graph_end(CUgraphExec exec, const struct bh_graph_call *call, CUresult rc);

#endif
