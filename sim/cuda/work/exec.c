/* Graphs that run: a copy of a graph, whose cost is the sum along its nodes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/work/graph.h"

#define EXEC_MAGIC 0x42484758u
#define INSTANTIATE_FLAGS 15u

struct CUgraphExec_st {
    uint32_t magic;
    unsigned long long flags;
    pthread_mutex_t lock; /* of what follows */
    CUgraph graph;
    struct CUstream_st *stream; /* of the last launch, which the next one waits for */
    uint64_t number;
};

static CUresult
exec_instantiate(CUgraphExec *graph_exec, CUgraph graph, unsigned long long flags)
{
    CUgraphExec exec;

    if (graph_exec == NULL || !sim_graph_is(graph) || (flags & ~INSTANTIATE_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    exec = calloc(1, sizeof(*exec));
    if (exec == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->graph = sim_graph_clone(graph);
    if (exec->graph == NULL) {
        free(exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->magic = EXEC_MAGIC;
    exec->flags = flags;
    pthread_mutex_init(&exec->lock, NULL);
    *graph_exec = exec;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuGraphInstantiate_v2(CUgraphExec *graph_exec, CUgraph graph, CUgraphNode *error_node, char *log_buffer,
                      size_t buffer_size)
{
    if (error_node != NULL)
        *error_node = NULL;
    if (log_buffer != NULL && buffer_size > 0)
        log_buffer[0] = '\0';
    return exec_instantiate(graph_exec, graph, 0);
}

CUDA_API CUresult
cuGraphInstantiate(CUgraphExec *graph_exec, CUgraph graph, CUgraphNode *error_node, char *log_buffer,
                   size_t buffer_size)
{
    return cuGraphInstantiate_v2(graph_exec, graph, error_node, log_buffer, buffer_size);
}

CUDA_ROW(cuGraphInstantiateWithFlags, (CUgraphExec * graph_exec, CUgraph graph, unsigned long long flags),
         exec_instantiate(graph_exec, graph, flags))

static CUresult
exec_instantiate_with(CUgraphExec *graph_exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CUresult rc;

    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    rc = exec_instantiate(graph_exec, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out = rc == CUDA_SUCCESS ? 0 : 1;
    return rc;
}

CUDA_ROW(cuGraphInstantiateWithParams,
         (CUgraphExec * graph_exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiate_params),
         exec_instantiate_with(graph_exec, graph, instantiate_params))
CUDA_ROW(cuGraphInstantiateWithParams_ptsz,
         (CUgraphExec * graph_exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiate_params),
         exec_instantiate_with(graph_exec, graph, instantiate_params))

static bool
is_exec(const struct CUgraphExec_st *exec)
{
    return exec != NULL && exec->magic == EXEC_MAGIC;
}

CUDA_API CUresult
cuGraphExecDestroy(CUgraphExec graph_exec)
{
    if (!is_exec(graph_exec))
        return CUDA_ERROR_INVALID_VALUE;
    graph_exec->magic = 0;
    sim_graph_free(graph_exec->graph);
    pthread_mutex_destroy(&graph_exec->lock);
    free(graph_exec);
    return CUDA_SUCCESS;
}

/* ---- launching ---- */

/* A launch needs what its nodes need even after the graph was destroyed. */
static void
exec_release_payload(void *self)
{
    sim_payload_release(self);
}

static void
exec_act_on_payload(void *self)
{
    const struct sim_payload *payload = self;

    payload->deed.act(payload->deed.self);
}

/* Add a node's cost to those before it; what acts on the host comes after them. */
static CUresult
exec_launch_node(struct CUstream_st *stream, struct sim_payload *payload, struct sim_deed *sum)
{
    struct sim_deed act = payload->deed;
    CUresult rc = CUDA_SUCCESS;

    if (payload->deed.act == NULL && payload->deed.engine == SIM_ENGINE_COMPUTE
        && (sum->cost_ns == 0 || sum->sms == payload->deed.sms)) {
        sum->sms = payload->deed.sms;
        sum->cost_ns += payload->deed.cost_ns;
        return CUDA_SUCCESS;
    }
    if (sum->cost_ns > 0)
        rc = sim_cuda_submit_deed(stream, sum);
    sum->cost_ns = 0;
    if (rc != CUDA_SUCCESS)
        return rc;
    if (act.act == NULL) {
        act.drop = NULL;
        return sim_cuda_submit_deed(stream, &act);
    }
    payload->references++;
    act.act = exec_act_on_payload;
    act.drop = exec_release_payload;
    act.self = payload;
    return sim_cuda_submit_deed(stream, &act);
}

/* A graph does not run beside itself. */
static CUresult
exec_follow_last(CUgraphExec exec, struct CUstream_st *stream)
{
    struct sim_order order = { .work = { .kind = SIM_TASK_AFTER, .after = exec->number } };

    if (exec->stream == NULL || exec->stream == stream || exec->stream->context != stream->context)
        return CUDA_SUCCESS;
    return sim_cuda_submit(stream, &order, NULL);
}

static CUresult
exec_take_memory(CUgraphExec exec)
{
    bool anew = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    CUresult rc = CUDA_SUCCESS;

    for (size_t i = 0; rc == CUDA_SUCCESS && i < exec->graph->count; i++) {
        const struct sim_payload *payload = exec->graph->node[i]->payload;

        if (payload->deed.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            rc = sim_graph_memory_take(payload, anew);
        if (payload->deed.type == CU_GRAPH_NODE_TYPE_MEM_FREE && !sim_graph_memory_free(payload->address))
            rc = CUDA_ERROR_INVALID_VALUE;
    }
    return rc;
}

/* Under its lock. */
static CUresult
exec_launch_nodes(CUgraphExec exec, struct CUstream_st *stream)
{
    struct sim_deed sum = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .engine = SIM_ENGINE_COMPUTE };
    CUresult rc = exec_follow_last(exec, stream);

    if (rc == CUDA_SUCCESS)
        rc = exec_take_memory(exec);
    for (size_t i = 0; rc == CUDA_SUCCESS && i < exec->graph->count; i++)
        rc = exec_launch_node(stream, exec->graph->node[i]->payload, &sum);
    if (rc == CUDA_SUCCESS && sum.cost_ns > 0)
        rc = sim_cuda_submit_deed(stream, &sum);
    exec->stream = stream;
    exec->number = __atomic_load_n(&stream->last, __ATOMIC_ACQUIRE);
    return rc;
}

/* A graph that is launched in a captured stream: its nodes, one after another. */
static CUresult
exec_launch(CUgraphExec exec, struct sim_stream_name name)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (!is_exec(exec))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&exec->lock);
    rc = exec_launch_nodes(exec, stream);
    pthread_mutex_unlock(&exec->lock);
    return rc;
}

static CUresult
exec_upload(CUgraphExec exec, struct sim_stream_name name)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    return rc == CUDA_SUCCESS && !is_exec(exec) ? CUDA_ERROR_INVALID_VALUE : rc;
}

CUDA_ROW(cuGraphLaunch, (CUgraphExec graph, CUstream stream),
         exec_launch(graph, (struct sim_stream_name){ stream, false }))
CUDA_ROW(cuGraphLaunch_ptsz, (CUgraphExec graph_exec, CUstream stream),
         exec_launch(graph_exec, (struct sim_stream_name){ stream, true }))
CUDA_ROW(cuGraphUpload, (CUgraphExec graph, CUstream stream),
         exec_upload(graph, (struct sim_stream_name){ stream, false }))
CUDA_ROW(cuGraphUpload_ptsz, (CUgraphExec graph_exec, CUstream stream),
         exec_upload(graph_exec, (struct sim_stream_name){ stream, true }))

/* ---- updating ---- */

static CUgraphExecUpdateResult
exec_compare_node(const struct CUgraphNode_st *old, const struct CUgraphNode_st *new)
{
    if (old->depends != new->depends)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < old->depends; i++)
        if (old->dependencies[i]->at != new->dependencies[i]->at)
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (old->payload->deed.type != new->payload->deed.type)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (old->payload->address != new->payload->address || old->payload->bytes != new->payload->bytes)
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void
exec_compare(CUgraph old, CUgraph new, CUgraphExecUpdateResultInfo *info)
{
    *info = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_SUCCESS };
    if (old->count != new->count)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS && i < old->count; i++) {
        info->result = exec_compare_node(old->node[i], new->node[i]);
        if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            info->errorNode = new->node[i];
    }
}

static CUresult
exec_update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    CUgraph copy;

    if (!is_exec(exec) || !sim_graph_is(graph) || info == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    exec_compare(exec->graph, graph, info);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    copy = sim_graph_clone(graph);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&exec->lock);
    sim_graph_free(exec->graph);
    exec->graph = copy;
    pthread_mutex_unlock(&exec->lock);
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuGraphExecUpdate(CUgraphExec graph_exec, CUgraph graph, CUgraphNode *error_node_out,
                  CUgraphExecUpdateResult *update_result_out)
{
    CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
    CUresult rc = exec_update(graph_exec, graph, &info);

    if (error_node_out != NULL)
        *error_node_out = info.errorNode;
    if (update_result_out != NULL)
        *update_result_out = info.result;
    return rc;
}

CUDA_ROW(cuGraphExecUpdate_v2,
         (CUgraphExec graph_exec, CUgraph graph, CUgraphExecUpdateResultInfo *result_info),
         exec_update(graph_exec, graph, result_info))
