/* Nodes of graphs: the calls that add them. */
#include "sim/cuda/work/graph.h"

/* A node to add: to which graph, after which nodes, and where its handle goes. */
struct addition {
    CUgraph graph;
    struct sim_tail after;
    CUgraphNode *node;
};

/* Arguments stand in the vendor's calls as node, graph, dependencies and their number. */
static struct addition
node_addition_of(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    return (struct addition){ graph, { (CUgraphNode *)(uintptr_t)dependencies, count }, node };
}

static bool
node_is_addition(const struct addition *addition)
{
    return addition->node != NULL && sim_graph_is(addition->graph);
}

static CUresult
node_add_deed(const struct addition *addition, const struct sim_deed *deed)
{
    struct sim_payload *payload = sim_payload_new(deed);

    return payload == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                           : sim_graph_add(addition->graph, addition->after, payload, addition->node);
}

static CUresult
node_add_kernel(const struct addition *addition, CUfunction function, void **parameters, void **extra)
{
    struct sim_deed deed;
    CUresult rc = node_is_addition(addition) ? sim_kernel_deed(function, parameters, extra, &deed)
                                             : CUDA_ERROR_INVALID_VALUE;

    return rc == CUDA_SUCCESS ? node_add_deed(addition, &deed) : rc;
}

static CUresult
node_add_host(const struct addition *addition, const CUDA_HOST_NODE_PARAMS *host)
{
    if (!node_is_addition(addition) || host == NULL || host->fn == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return node_add_deed(
        addition,
        &(struct sim_deed){ .type = CU_GRAPH_NODE_TYPE_HOST, .act = host->fn, .self = host->userData });
}

static CUresult
node_add_empty(const struct addition *addition)
{
    if (!node_is_addition(addition))
        return CUDA_ERROR_INVALID_VALUE;
    return node_add_deed(addition, &(struct sim_deed){ .type = CU_GRAPH_NODE_TYPE_EMPTY });
}

static CUresult
node_add_alloc(const struct addition *addition, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
    struct sim_deed deed = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
    struct sim_payload *payload;
    CUresult rc;

    if (!node_is_addition(addition) || alloc == NULL || alloc->bytesize == 0
        || alloc->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
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
    return sim_graph_add(addition->graph, addition->after, payload, addition->node);
}

static CUresult
node_add_free(const struct addition *addition, CUdeviceptr address)
{
    struct sim_deed deed = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE };
    struct sim_payload *payload;

    if (!node_is_addition(addition) || address == 0)
        return CUDA_ERROR_INVALID_VALUE;
    payload = sim_payload_new(&deed);
    if (payload == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    payload->address = address;
    return sim_graph_add(addition->graph, addition->after, payload, addition->node);
}

static CUresult
node_add_any(const struct addition *addition, CUgraphNodeParams *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
        return node_add_kernel(
            addition, params->kernel.func != NULL ? params->kernel.func : (CUfunction)params->kernel.kern,
            params->kernel.kernelParams, params->kernel.extra);
    if (params->type == CU_GRAPH_NODE_TYPE_HOST)
        return node_add_host(addition, &params->host);
    if (params->type == CU_GRAPH_NODE_TYPE_EMPTY)
        return node_add_empty(addition);
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return node_add_alloc(addition, &params->alloc);
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return node_add_free(addition, params->free.dptr);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
node_add_kernel_v1(const struct addition *addition, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return node_add_kernel(addition, params->func, params->kernelParams, params->extra);
}

static CUresult
node_add_kernel_v2(const struct addition *addition, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return node_add_kernel(addition, params->func != NULL ? params->func : (CUfunction)params->kern,
                           params->kernelParams, params->extra);
}

#define ADD_NODE(name, type, add)                                                                            \
    CUDA_API CUresult name(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,          \
                           size_t num_dependencies, type params)                                             \
    {                                                                                                        \
        struct addition addition = node_addition_of(graph_node, graph, dependencies, num_dependencies);      \
                                                                                                             \
        return add(&addition, params);                                                                       \
    }

ADD_NODE(cuGraphAddKernelNode, const CUDA_KERNEL_NODE_PARAMS_v1 *, node_add_kernel_v1)
ADD_NODE(cuGraphAddKernelNode_v2, const CUDA_KERNEL_NODE_PARAMS *, node_add_kernel_v2)
ADD_NODE(cuGraphAddHostNode, const CUDA_HOST_NODE_PARAMS *, node_add_host)
ADD_NODE(cuGraphAddMemAllocNode, CUDA_MEM_ALLOC_NODE_PARAMS *, node_add_alloc)
ADD_NODE(cuGraphAddMemFreeNode, CUdeviceptr, node_add_free)
ADD_NODE(cuGraphAddNode, CUgraphNodeParams *, node_add_any)

CUDA_API CUresult
cuGraphAddEmptyNode(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
                    size_t num_dependencies)
{
    struct addition addition = node_addition_of(graph_node, graph, dependencies, num_dependencies);

    return node_add_empty(&addition);
}

CUDA_API CUresult
cuGraphAddNode_v2(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
                  const CUgraphEdgeData *dependency_data, size_t num_dependencies,
                  CUgraphNodeParams *node_params)
{
    return cuGraphAddNode(graph_node, graph, dependencies, num_dependencies, node_params);
}
