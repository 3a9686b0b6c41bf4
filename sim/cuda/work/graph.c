/* Graphs: nodes, and calls that make them. */
#include "sim/cuda/work/graph.h"

#include <stdlib.h>
#include <string.h>

#define GRAPH_MAGIC 0x42484752u
#define NODES_LEAST 16

/* ---- what nodes do ---- */

struct sim_payload *
sim_payload_new(const struct sim_deed *deed)
{
    struct sim_payload *payload = calloc(1, sizeof(*payload));

    if (payload == NULL) {
        if (deed->drop != NULL)
            deed->drop(deed->self);
        return NULL;
    }
    payload->references = 1;
    payload->deed = *deed;
    return payload;
}

void
sim_payload_release(struct sim_payload *payload)
{
    if (payload == NULL || --payload->references > 0)
        return;
    if (payload->deed.drop != NULL)
        payload->deed.drop(payload->deed.self);
    if (payload->deed.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        sim_graph_memory_forget(payload);
    free(payload);
}

/* ---- graphs ---- */

CUgraph
sim_graph_new(void)
{
    CUgraph graph = calloc(1, sizeof(*graph));

    if (graph != NULL)
        graph->magic = GRAPH_MAGIC;
    return graph;
}

bool
sim_graph_is(CUgraph graph)
{
    return graph != NULL && graph->magic == GRAPH_MAGIC;
}

static void
free_node(CUgraphNode node)
{
    sim_payload_release(node->payload);
    free(node->dependencies);
    free(node);
}

void
sim_graph_free(CUgraph graph)
{
    if (graph == NULL)
        return;
    for (size_t i = 0; i < graph->count; i++)
        free_node(graph->node[i]);
    graph->magic = 0;
    free(graph->node);
    free(graph);
}

static bool
has_room(CUgraph graph)
{
    size_t room = graph->room == 0 ? NODES_LEAST : graph->room * 2;
    CUgraphNode *node;

    if (graph->count < graph->room)
        return true;
    node = realloc(graph->node, room * sizeof(CUgraphNode));
    if (node == NULL)
        return false;
    graph->node = node;
    graph->room = room;
    return true;
}

static bool
is_of(CUgraph graph, struct sim_tail after)
{
    if (after.count > 0 && after.node == NULL)
        return false;
    for (size_t i = 0; i < after.count; i++)
        if (after.node[i] == NULL || after.node[i]->graph != graph)
            return false;
    return true;
}

static CUresult
refuse(CUgraphNode node, struct sim_payload *payload, CUresult rc)
{
    sim_payload_release(payload);
    if (node != NULL)
        free(node->dependencies);
    free(node);
    return rc;
}

CUresult
sim_graph_add(CUgraph graph, struct sim_tail after, struct sim_payload *payload,
              CUgraphNode *ret_node)
{
    size_t bytes = after.count * sizeof(CUgraphNode);
    CUgraphNode node;

    if (!is_of(graph, after))
        return refuse(NULL, payload, CUDA_ERROR_INVALID_VALUE);
    node = calloc(1, sizeof(*node));
    if (node == NULL)
        return refuse(NULL, payload, CUDA_ERROR_OUT_OF_MEMORY);
    node->dependencies = bytes > 0 ? malloc(bytes) : NULL;
    if ((bytes > 0 && node->dependencies == NULL) || !has_room(graph))
        return refuse(node, payload, CUDA_ERROR_OUT_OF_MEMORY);
    if (bytes > 0)
        memcpy(node->dependencies, after.node, bytes);
    for (size_t i = 0; i < after.count; i++)
        after.node[i]->has_dependents = true;
    node->graph = graph;
    node->payload = payload;
    node->depends = after.count;
    node->at = graph->count;
    graph->node[graph->count++] = node;
    *ret_node = node;
    return CUDA_SUCCESS;
}

static CUresult
copy_node(CUgraph copy, const struct CUgraphNode_st *node)
{
    struct sim_tail after = { NULL, node->depends };
    CUgraphNode unused;
    CUresult rc;

    if (after.count > 0) {
        after.node = malloc(after.count * sizeof(CUgraphNode));
        if (after.node == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < after.count; i++)
        after.node[i] = copy->node[node->dependencies[i]->at];
    node->payload->references++;
    rc = sim_graph_add(copy, after, node->payload, &unused);
    free(after.node);
    return rc;
}

CUgraph
sim_graph_clone(CUgraph graph)
{
    CUgraph copy = sim_graph_new();
    CUresult rc = CUDA_SUCCESS;

    for (size_t i = 0; copy != NULL && rc == CUDA_SUCCESS && i < graph->count; i++)
        rc = copy_node(copy, graph->node[i]);
    if (rc == CUDA_SUCCESS)
        return copy;
    sim_graph_free(copy);
    return NULL;
}

CUDA_API CUresult
cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (graph == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = sim_graph_new();
    return *graph == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUDA_API CUresult
cuGraphDestroy(CUgraph graph)
{
    if (!sim_graph_is(graph))
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_free(graph);
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuGraphClone(CUgraph *graph_clone, CUgraph original_graph)
{
    if (graph_clone == NULL || !sim_graph_is(original_graph))
        return CUDA_ERROR_INVALID_VALUE;
    *graph_clone = sim_graph_clone(original_graph);
    return *graph_clone == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Without room for them only their number is answered. */
CUDA_API CUresult
cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *num_nodes)
{
    if (!sim_graph_is(graph) || num_nodes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes != NULL && i < *num_nodes; i++)
        nodes[i] = i < graph->count ? graph->node[i] : NULL;
    if (nodes == NULL || *num_nodes > graph->count)
        *num_nodes = graph->count;
    return CUDA_SUCCESS;
}

/* ---- adding nodes ---- */

/* Where a node is to stand. */
struct spot {
    CUgraph graph;
    struct sim_tail after;
    CUgraphNode *node;
};

/* Arguments stand in the vendor's calls as node, graph, dependencies and their number. */
static struct spot
spot_of(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    return (struct spot) { graph, { (CUgraphNode *)(uintptr_t)dependencies, count }, node };
}

static bool
is_spot(const struct spot *spot)
{
    return spot->node != NULL && sim_graph_is(spot->graph);
}

static CUresult
add_deed(const struct spot *spot, const struct sim_deed *deed)
{
    struct sim_payload *payload = sim_payload_new(deed);

    return payload == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                           : sim_graph_add(spot->graph, spot->after, payload, spot->node);
}

static CUresult
add_kernel(const struct spot *spot, CUfunction function, void **parameters, void **extra)
{
    struct sim_deed deed;
    CUresult rc = is_spot(spot) ? sim_kernel_deed(function, parameters, extra, &deed)
                                : CUDA_ERROR_INVALID_VALUE;

    return rc == CUDA_SUCCESS ? add_deed(spot, &deed) : rc;
}

static CUresult
add_host(const struct spot *spot, const CUDA_HOST_NODE_PARAMS *host)
{
    if (!is_spot(spot) || host == NULL || host->fn == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return add_deed(spot, &(struct sim_deed) { .type = CU_GRAPH_NODE_TYPE_HOST,
                                               .act = host->fn,
                                               .self = host->userData });
}

static CUresult
add_empty(const struct spot *spot)
{
    if (!is_spot(spot))
        return CUDA_ERROR_INVALID_VALUE;
    return add_deed(spot, &(struct sim_deed) { .type = CU_GRAPH_NODE_TYPE_EMPTY });
}

static CUresult
add_alloc(const struct spot *spot, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
    struct sim_deed deed = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
    struct sim_payload *payload;
    CUresult rc;

    if (!is_spot(spot) || alloc == NULL || alloc->bytesize == 0 ||
        alloc->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    payload = sim_payload_new(&deed);
    if (payload == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    payload->bytes = alloc->bytesize;
    payload->device = alloc->poolProps.location.id;
    rc = sim_graph_memory_reserve(payload);
    if (rc != CUDA_SUCCESS) {
        payload->deed.type = CU_GRAPH_NODE_TYPE_EMPTY;
        sim_payload_release(payload);
        return rc;
    }
    alloc->dptr = payload->address;
    return sim_graph_add(spot->graph, spot->after, payload, spot->node);
}

static CUresult
add_free(const struct spot *spot, CUdeviceptr address)
{
    struct sim_deed deed = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE };
    struct sim_payload *payload;

    if (!is_spot(spot) || address == 0)
        return CUDA_ERROR_INVALID_VALUE;
    payload = sim_payload_new(&deed);
    if (payload == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    payload->address = address;
    return sim_graph_add(spot->graph, spot->after, payload, spot->node);
}

static CUresult
add_any(const struct spot *spot, CUgraphNodeParams *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
        return add_kernel(spot,
                          params->kernel.func != NULL ? params->kernel.func
                                                      : (CUfunction)params->kernel.kern,
                          params->kernel.kernelParams, params->kernel.extra);
    if (params->type == CU_GRAPH_NODE_TYPE_HOST)
        return add_host(spot, &params->host);
    if (params->type == CU_GRAPH_NODE_TYPE_EMPTY)
        return add_empty(spot);
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return add_alloc(spot, &params->alloc);
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return add_free(spot, params->free.dptr);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUDA_API CUresult
cuGraphAddKernelNode(CUgraphNode *graph_node, CUgraph graph,
                     const CUgraphNode *dependencies, size_t num_dependencies,
                     const CUDA_KERNEL_NODE_PARAMS_v1 *node_params)
{
    struct spot spot = spot_of(graph_node, graph, dependencies, num_dependencies);

    if (node_params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return add_kernel(&spot, node_params->func, node_params->kernelParams,
                      node_params->extra);
}

CUDA_API CUresult
cuGraphAddKernelNode_v2(CUgraphNode *graph_node, CUgraph graph,
                        const CUgraphNode *dependencies, size_t num_dependencies,
                        const CUDA_KERNEL_NODE_PARAMS *node_params)
{
    struct spot spot = spot_of(graph_node, graph, dependencies, num_dependencies);

    if (node_params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return add_kernel(&spot,
                      node_params->func != NULL ? node_params->func
                                                : (CUfunction)node_params->kern,
                      node_params->kernelParams, node_params->extra);
}

CUDA_API CUresult
cuGraphAddEmptyNode(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
                    size_t num_dependencies)
{
    struct spot spot = spot_of(graph_node, graph, dependencies, num_dependencies);

    return add_empty(&spot);
}

CUDA_API CUresult
cuGraphAddHostNode(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
                   size_t num_dependencies, const CUDA_HOST_NODE_PARAMS *node_params)
{
    struct spot spot = spot_of(graph_node, graph, dependencies, num_dependencies);

    return add_host(&spot, node_params);
}

CUDA_API CUresult
cuGraphAddMemAllocNode(CUgraphNode *graph_node, CUgraph graph,
                       const CUgraphNode *dependencies, size_t num_dependencies,
                       CUDA_MEM_ALLOC_NODE_PARAMS *node_params)
{
    struct spot spot = spot_of(graph_node, graph, dependencies, num_dependencies);

    return add_alloc(&spot, node_params);
}

CUDA_API CUresult
cuGraphAddMemFreeNode(CUgraphNode *graph_node, CUgraph graph,
                      const CUgraphNode *dependencies, size_t num_dependencies,
                      CUdeviceptr address)
{
    struct spot spot = spot_of(graph_node, graph, dependencies, num_dependencies);

    return add_free(&spot, address);
}

CUDA_API CUresult
cuGraphAddNode(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
               size_t num_dependencies, CUgraphNodeParams *node_params)
{
    struct spot spot = spot_of(graph_node, graph, dependencies, num_dependencies);

    return add_any(&spot, node_params);
}

CUDA_API CUresult
cuGraphAddNode_v2(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
                  const CUgraphEdgeData *dependency_data, size_t num_dependencies,
                  CUgraphNodeParams *node_params)
{
    struct spot spot = spot_of(graph_node, graph, dependencies, num_dependencies);

    (void)dependency_data;
    return add_any(&spot, node_params);
}
