/* The null driver's work: streams, events, kernels and graphs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/null/driver.h"

static void
work_busy(uint64_t ns)
{
    _Atomic uint64_t *until = &bh_null_world->busy_until_ns[0];
    uint64_t now, before, from;

    if (!bh_null_shared)
        return;
    atomic_fetch_add(&bh_null_world->launches, 1);
    if (atomic_load(&bh_null_world->closed) != 0)
        atomic_fetch_add(&bh_null_world->launched_late, 1);
    now = bh_null_now_ns();
    before = atomic_load(until);
    do {
        from = before > now ? before : now;
    } while (!atomic_compare_exchange_weak(until, &before, from + ns));
}

static uint64_t
work_done_ns(void)
{
    return bh_null_shared ? atomic_load(&bh_null_world->busy_until_ns[0]) : 0;
}

static void
work_wait_until(uint64_t ns)
{
    struct timespec at = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

    if (ns > bh_null_now_ns())
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

CUresult
cuLaunchKernel(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y, unsigned int grid_dim_z,
               unsigned int block_dim_x, unsigned int block_dim_y, unsigned int block_dim_z,
               unsigned int shared_mem_bytes, CUstream stream, void **kernel_params, void **extra)
{
    work_busy((uintptr_t)function);
    return CUDA_SUCCESS;
}

CUresult
cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                    unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y,
                    unsigned int block_dim_z, unsigned int shared_mem_bytes, CUstream stream,
                    void **kernel_params, void **extra)
{
    work_busy((uintptr_t)function);
    return CUDA_SUCCESS;
}

ANSWER(cuLaunchKernelEx,
       (const CUlaunchConfig *config, CUfunction function, void **kernel_params, void **extra),
       work_busy((uintptr_t)function))

CUresult
cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                          unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y,
                          unsigned int block_dim_z, unsigned int shared_mem_bytes, CUstream stream,
                          void **kernel_params)
{
    work_busy((uintptr_t)function);
    return CUDA_SUCCESS;
}

ANSWER(cuMemsetD8Async, (CUdeviceptr target, unsigned char value, size_t count, CUstream stream),
       work_busy(count >> 10))
ANSWER(cuCtxSynchronize, (void), work_wait_until(work_done_ns()), bh_null_pools_waited())
ANSWER(cuStreamSynchronize, (CUstream stream), work_wait_until(work_done_ns()), bh_null_pools_waited())
ANSWER(cuStreamCreate, (CUstream * stream, unsigned int flags), *stream = calloc(1, sizeof(**stream)))
ANSWER(cuStreamDestroy_v2, (CUstream stream), free(stream))
ANSWER(cuEventCreate, (CUevent * event, unsigned int flags), *event = calloc(1, sizeof(**event)))
ANSWER(cuEventDestroy_v2, (CUevent event), free(event))
ANSWER(cuEventRecord, (CUevent event, CUstream stream), event->done_ns = work_done_ns())

CUresult
cuEventQuery(CUevent event)
{
    return event->done_ns > bh_null_now_ns() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* ---- captures and graphs ---- */

ANSWER(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
       stream->captured = calloc(1, sizeof(*stream->captured)))
ANSWER(cuStreamEndCapture, (CUstream stream, CUgraph *graph), *graph = stream->captured,
       stream->captured = NULL)

static CUgraph
work_capture_of(CUstream stream)
{
    return (uintptr_t)stream > 2 ? stream->captured : NULL;
}

CUresult
cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *capture_status)
{
    *capture_status =
        work_capture_of(stream) != NULL ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult
cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *capture_status_out, uint64_t *id_out,
                          CUgraph *graph_out, const CUgraphNode **dependencies_out,
                          size_t *num_dependencies_out)
{
    *graph_out = work_capture_of(stream);
    return cuStreamIsCapturing(stream, capture_status_out);
}

CUresult
cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static __thread CUstreamCaptureMode mine;
    CUstreamCaptureMode before = mine;

    mine = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

ANSWER(cuGraphCreate, (CUgraph * graph, unsigned int flags), *graph = calloc(1, sizeof(**graph)))
ANSWER(cuGraphDestroy, (CUgraph graph), free(graph))

CUresult
cuGraphAddMemAllocNode(CUgraphNode *graph_node, CUgraph graph, const CUgraphNode *dependencies,
                       size_t num_dependencies, CUDA_MEM_ALLOC_NODE_PARAMS *node_params)
{
    uint64_t bytes = (node_params->bytesize + NULL_UNIT - 1) / NULL_UNIT * NULL_UNIT;

    graph->bytes += bytes;
    node_params->dptr = NULL_GRAPH_BASE | bytes;
    return CUDA_SUCCESS;
}

CUresult
cuGraphInstantiateWithFlags(CUgraphExec *graph_exec, CUgraph graph, unsigned long long flags)
{
    *graph_exec = calloc(1, sizeof(**graph_exec));
    (*graph_exec)->bytes = graph->bytes;
    return CUDA_SUCCESS;
}

CUresult
cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
    if (!graph->there && graph->bytes != 0) {
        bh_null_graph_take(graph->bytes);
        graph->there = true;
    }
    work_busy(1000);
    return CUDA_SUCCESS;
}

ANSWER(cuGraphExecDestroy, (CUgraphExec graph_exec), free(graph_exec))
