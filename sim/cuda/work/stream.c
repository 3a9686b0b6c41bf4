/* Fills, copies and frees as work in streams. */
#include "sim/cuda/work/stream.h"

#include <stdlib.h>

#include "sim/cuda/memory/space.h"
#include "sim/cuda/work/work.h"

/* What it is as work of the device: which engine, and for how long. */
static struct sim_deed
deed_of(const struct sim_operation *operation)
{
    struct sim_deed deed = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
    bool from_device = sim_space_has(operation->source), to_device = sim_space_has(operation->target);

    if (operation->kind == SIM_OPERATION_FREE) {
        deed.type = CU_GRAPH_NODE_TYPE_EMPTY;
        return deed;
    }
    if (operation->kind == SIM_OPERATION_FILL)
        deed.type = CU_GRAPH_NODE_TYPE_MEMSET;
    else if (from_device != to_device)
        deed.engine = to_device ? SIM_ENGINE_COPY_IN : SIM_ENGINE_COPY_OUT;
    deed.cost_ns = sim_cuda_copy_ns(
        deed.type, deed.engine,
        operation->kind == SIM_OPERATION_FILL ? operation->count * operation->width : operation->count);
    return deed;
}

/* A context that never had work in streams needs no order. */
static bool
has_streams(CUstream stream)
{
    struct CUctx_st *context;

    return stream != NULL || sim_cuda_current(&context) != CUDA_SUCCESS
           || __atomic_load_n(&context->work, __ATOMIC_ACQUIRE) != NULL;
}

static void
stream_operate(void *self)
{
    (void)sim_operation_run(self);
}

CUresult
sim_cuda_stream_submit(CUstream stream, bool own, const struct sim_operation *operation)
{
    struct sim_deed deed = deed_of(operation);
    struct sim_operation *copy;

    if (!has_streams(stream))
        return sim_operation_run(operation);
    copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = *operation;
    deed.act = stream_operate;
    deed.drop = free;
    deed.self = copy;
    return sim_cuda_do((struct sim_stream_name){ stream, own }, &deed);
}

CUresult
sim_cuda_stream_run(bool own, const struct sim_operation *operation)
{
    const struct sim_stream_name name = { NULL, own };
    struct sim_deed deed = deed_of(operation);
    CUresult rc = sim_cuda_capture_check();

    if (rc != CUDA_SUCCESS || !has_streams(NULL))
        return rc == CUDA_SUCCESS ? sim_operation_run(operation) : rc;
    rc = sim_cuda_do(name, &deed);
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_wait(name);
    return rc == CUDA_SUCCESS ? sim_operation_run(operation) : rc;
}
