#include "shim/calls/graph.h"

#include <stdatomic.h>

#include "shim/charge/charge.h"
#include "shim/charge/pool.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/handles.h"
#include "shim/work/meter.h"

/* A key: a handle and a device.  A graph's word: grains.  An executable graph's: 40 bits
 * grains, 24 bits the era in which its memory was last seen to be there. */
#define KEY(pointer, device) ((uint64_t)(uintptr_t)(pointer)*BH_SHARE_DEVICES_MAX + (device))
#define ERAS 0xffffffu

static struct bh_handles graphs, execs;
static BH_STATE union {
    struct {
        _Atomic uint32_t with_memory;
    };
    char whole[BH_STATE_ALIGN];
} state;

void
bh_graphs_init(void)
{
    bh_handles_init(&graphs);
    bh_handles_init(&execs);
    bh_state_wipe_on_fork(&state, sizeof(state));
}

bool
bh_graph_is_simple(void)
{
    return atomic_load_explicit(&state.with_memory, memory_order_relaxed) == 0;
}

static uint64_t
graph_era_now(void)
{
    return bh_pools_era() & ERAS;
}

/* Where it will lie is not known: no two nodes share a unit. */
void
bh_graph_add(CUgraph graph, unsigned device, uint64_t grains)
{
    _Atomic uint64_t *word = bh_handles_at(&graphs, KEY(graph, device));

    grains = bh_charge_of_units(bh_charge_units(grains));
    atomic_store(&state.with_memory, 1);
    if (word != NULL)
        atomic_fetch_add(word, grains);
    else
        (void)BH_HOLDS(bh_handles_put(&graphs, KEY(graph, device), grains));
}

/* ---- bringing memory ---- */

static bool
graph_needs(CUgraphExec exec, unsigned device, uint64_t *ret_grains)
{
    uint64_t word;

    if (!bh_handles_find(&execs, KEY(exec, device), &word) || (word & ERAS) == graph_era_now())
        return false;
    *ret_grains = word >> 24;
    return true;
}

CUresult
bh_graph_begin(CUgraphExec exec, struct bh_graph_call *ret_call)
{
    ret_call->begun = 0;
    if (__builtin_expect(bh_graph_is_simple(), 1))
        return CUDA_SUCCESS;
    ret_call->era = graph_era_now();
    for (unsigned device = 0; device < bh_page->limits->device_count; device++) {
        uint64_t *grains = &ret_call->grains[device];

        if (!graph_needs(exec, device, grains))
            continue;
        if (bh_pool_begin(bh_pool_of_graphs(device), *grains) != CUDA_SUCCESS) {
            bh_graph_end(exec, ret_call, CUDA_ERROR_OUT_OF_MEMORY);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        ret_call->begun |= 1u << device;
    }
    return CUDA_SUCCESS;
}

void
bh_graph_end(CUgraphExec exec, const struct bh_graph_call *call, CUresult rc)
{
    for (unsigned device = 0; call->begun >> device != 0; device++) {
        uint64_t grains = call->grains[device];

        if ((call->begun & 1u << device) == 0)
            continue;
        if (bh_pool_end(bh_pool_of_graphs(device), grains, false) && rc == CUDA_SUCCESS)
            (void)bh_handles_put(&execs, KEY(exec, device), grains << 24 | call->era);
    }
}

/* ---- nodes ---- */

static void
graph_note_node(CUgraph graph, const CUDA_MEM_ALLOC_NODE_PARAMS *node)
{
    const CUmemLocation *location = &node->poolProps.location;
    int device = location->type == CU_MEM_LOCATION_TYPE_DEVICE && bh_page_is_joined()
                     ? bh_page_device(location->id)
                     : -1;

    if (device >= 0)
        bh_graph_add(graph, (unsigned)device, bh_charge_grains(node->bytesize));
}

/* What one graph has, another has now, too. */
static void
graph_copy(CUgraph from, CUgraph to)
{
    uint64_t grains;

    for (unsigned device = 0; !bh_graph_is_simple() && device < BH_SHARE_DEVICES_MAX; device++)
        if (bh_handles_find(&graphs, KEY(from, device), &grains))
            bh_graph_add(to, device, grains);
}

CUresult
cuGraphAddMemAllocNode(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
                       size_t num_dependencies, CUDA_MEM_ALLOC_NODE_PARAMS *node_params)
{
    CUresult rc =
        REAL(cuGraphAddMemAllocNode)(graph_node, graph, dependencies, num_dependencies, node_params);

    if (rc == CUDA_SUCCESS)
        graph_note_node(graph, node_params);
    return rc;
}

static CUresult
graph_added(CUgraph graph, const CUgraphNodeParams *node, CUresult rc)
{
    if (rc == CUDA_SUCCESS && node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        graph_note_node(graph, &node->alloc);
    if (rc == CUDA_SUCCESS && node->type == CU_GRAPH_NODE_TYPE_GRAPH)
        graph_copy((CUgraph)(uintptr_t)node->reserved1[0], graph);
    return rc;
}

CUresult
cuGraphAddNode(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
               size_t num_dependencies, CUgraphNodeParams *node_params)
{
    return graph_added(graph, node_params,
                       REAL(cuGraphAddNode)(graph_node, graph, dependencies, num_dependencies, node_params));
}

CUresult
cuGraphAddNode_v2(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
                  const CUgraphEdgeData *dependency_data, size_t num_dependencies,
                  CUgraphNodeParams *node_params)
{
    return graph_added(graph, node_params,
                       REAL(cuGraphAddNode_v2)(graph_node, graph, dependencies, dependency_data,
                                               num_dependencies, node_params));
}

CUresult
cuGraphClone(CUgraph *graph_clone, CUgraph original_graph)
{
    CUresult rc = REAL(cuGraphClone)(graph_clone, original_graph);

    if (rc == CUDA_SUCCESS)
        graph_copy(original_graph, *graph_clone);
    return rc;
}

CUresult
cuGraphDestroy(CUgraph graph)
{
    uint64_t grains;

    for (unsigned device = 0; !bh_graph_is_simple() && device < BH_SHARE_DEVICES_MAX; device++)
        (void)bh_handles_take(&graphs, KEY(graph, device), &grains);
    return REAL(cuGraphDestroy)(graph);
}

/* ---- executable graphs ---- */

static void
graph_learn(CUgraphExec exec, CUgraph graph)
{
    uint64_t grains;

    for (unsigned device = 0; !bh_graph_is_simple() && device < BH_SHARE_DEVICES_MAX; device++)
        if (bh_handles_find(&graphs, KEY(graph, device), &grains))
            (void)BH_HOLDS(bh_handles_put(&execs, KEY(exec, device), grains << 24));
}

#define INSTANTIATE(name, parameters, arguments)                                                             \
    CUresult name parameters                                                                                 \
    {                                                                                                        \
        CUresult rc = REAL(name) arguments;                                                                  \
                                                                                                             \
        if (rc == CUDA_SUCCESS)                                                                              \
            graph_learn(*exec, graph);                                                                       \
        return rc;                                                                                           \
    }

INSTANTIATE(cuGraphInstantiate,
            (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t bytes),
            (exec, graph, error_node, log, bytes))
INSTANTIATE(cuGraphInstantiate_v2,
            (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t bytes),
            (exec, graph, error_node, log, bytes))
INSTANTIATE(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
            (exec, graph, flags))
INSTANTIATE(cuGraphInstantiateWithParams,
            (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
            (exec, graph, parameters))
INSTANTIATE(cuGraphInstantiateWithParams_ptsz,
            (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
            (exec, graph, parameters))

CUresult
cuGraphExecDestroy(CUgraphExec graph_exec)
{
    uint64_t word;

    for (unsigned device = 0; !bh_graph_is_simple() && device < BH_SHARE_DEVICES_MAX; device++)
        (void)bh_handles_take(&execs, KEY(graph_exec, device), &word);
    bh_meter_forget_work((uintptr_t)graph_exec);
    return REAL(cuGraphExecDestroy)(graph_exec);
}

/* It may need other memory and other time from now on. */
static CUresult
graph_updated(CUgraphExec exec, CUgraph graph, CUresult rc)
{
    if (rc == CUDA_SUCCESS) {
        graph_learn(exec, graph);
        bh_meter_forget_work((uintptr_t)exec);
    }
    return rc;
}

CUresult
cuGraphExecUpdate(CUgraphExec graph_exec, CUgraph graph, CUgraphNode *error_node_out,
                  CUgraphExecUpdateResult *update_result_out)
{
    return graph_updated(graph_exec, graph,
                         REAL(cuGraphExecUpdate)(graph_exec, graph, error_node_out, update_result_out));
}

CUresult
cuGraphExecUpdate_v2(CUgraphExec graph_exec, CUgraph graph, CUgraphExecUpdateResultInfo *result_info)
{
    return graph_updated(graph_exec, graph, REAL(cuGraphExecUpdate_v2)(graph_exec, graph, result_info));
}

#define UPLOAD(name)                                                                                         \
    CUresult name(CUgraphExec graph, CUstream stream)                                                        \
    {                                                                                                        \
        struct bh_graph_call call;                                                                           \
        CUresult rc = bh_graph_begin(graph, &call);                                                          \
                                                                                                             \
        if (rc != CUDA_SUCCESS)                                                                              \
            return rc;                                                                                       \
        rc = REAL(name)(graph, stream);                                                                      \
        bh_graph_end(graph, &call, rc);                                                                      \
        return rc;                                                                                           \
    }

UPLOAD(cuGraphUpload)
UPLOAD(cuGraphUpload_ptsz)
