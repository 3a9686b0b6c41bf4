/* Graphs, and calls that make them. */
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
graph_free_node(CUgraphNode node)
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
        graph_free_node(graph->node[i]);
    graph->magic = 0;
    free(graph->node);
    free(graph);
}

static bool
graph_has_room(CUgraph graph)
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
graph_is_of(CUgraph graph, struct sim_tail after)
{
    if (after.count > 0 && after.node == NULL)
        return false;
    for (size_t i = 0; i < after.count; i++)
        if (after.node[i] == NULL || after.node[i]->graph != graph)
            return false;
    return true;
}

static CUresult
graph_refuse(CUgraphNode node, struct sim_payload *payload, CUresult rc)
{
    sim_payload_release(payload);
    if (node != NULL)
        free(node->dependencies);
    free(node);
    return rc;
}

CUresult
sim_graph_add(CUgraph graph, struct sim_tail after, struct sim_payload *payload, CUgraphNode *ret_node)
{
    size_t bytes = after.count * sizeof(CUgraphNode);
    CUgraphNode node;

    if (!graph_is_of(graph, after))
        return graph_refuse(NULL, payload, CUDA_ERROR_INVALID_VALUE);
    node = calloc(1, sizeof(*node));
    if (node == NULL)
        return graph_refuse(NULL, payload, CUDA_ERROR_OUT_OF_MEMORY);
    node->dependencies = bytes > 0 ? malloc(bytes) : NULL;
    if ((bytes > 0 && node->dependencies == NULL) || !graph_has_room(graph))
        return graph_refuse(node, payload, CUDA_ERROR_OUT_OF_MEMORY);
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
graph_copy_node(CUgraph copy, const struct CUgraphNode_st *node)
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
        rc = graph_copy_node(copy, graph->node[i]);
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
