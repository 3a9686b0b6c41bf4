/* The contract of the simulated libcuda.so.1's graphs and captures, through its exported
 * names. */
#include "sim/cuda/work/work_test.h"

static char order[8];

static void
note_order(void *self)
{
    order[strlen(order)] = *(const char *)self;
}

/* ---- graphs ---- */

static void
launches_graphs(void)
{
    static const char *const steps[] = { "k_100us", "k_200us", "k_300us" };
    CUgraph graph, clone;
    CUgraphNode node = NULL, first = NULL;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    CUstream stream;
    CUevent start, end;
    size_t count = 0;

    open_module();
    start = event();
    end = event();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < 3; i++) {
        CUDA_KERNEL_NODE_PARAMS_v1 params = { .func = kernel(steps[i]) };
        CUgraphNode before = node;

        OK(cuGraphAddKernelNode(&node, graph, &before, i > 0, &params));
        first = i == 0 ? node : first;
    }
    OK(cuGraphGetNodes(graph, NULL, &count));
    MUST(count == 3);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphUpload(exec, stream));
    hold(stream);
    OK(cuEventRecord(start, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuEventRecord(end, stream));
    let_go();
    MUST(fabs(between(start, end) - 1200) < 0.01);
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphAddEmptyNode(&node, clone, NULL, 0));
    MUST(cuGraphAddEmptyNode(&node, clone, &first, 1) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuGraphExecUpdate_v2(exec, clone, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    MUST(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuGraphExecUpdate_v2(exec, graph, &info));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(clone));
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamSynchronize(stream));
}

static void
test_graphs(void **state)
{
    in_process(launches_graphs);
}

static void
captures(void)
{
    CUstream stream, side;
    CUevent fork_event, join_event;
    CUgraph graph;
    CUgraphExec exec;
    CUstreamCaptureStatus status;
    uint64_t id, first;
    size_t count;

    open_module();
    fork_event = event();
    join_event = event();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL)
         == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_ILLEGAL_STATE);
    OK(launch(kernel("k_1ms"), stream));
    OK(cuEventRecord(fork_event, stream));
    OK(cuStreamWaitEvent(side, fork_event, 0));
    OK(cuLaunchHostFunc(side, note_order, (void *)"x"));
    OK(cuEventRecord(join_event, side));
    OK(launch(kernel("k_1ms"), stream));
    OK(cuStreamWaitEvent(stream, join_event, 0));
    OK(cuStreamGetCaptureInfo(stream, &status, &first));
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, NULL, &count));
    MUST(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id == first && id != 0 && count == 2);
    MUST(cuEventQuery(join_event) == CUDA_ERROR_CAPTURED_EVENT);
    MUST(cuStreamEndCapture(side, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    OK(cuStreamIsCapturing(side, &status));
    MUST(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED); /* by the wrong end */
    MUST(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    MUST(graph == NULL);
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch(kernel("k_1ms"), stream));
    OK(cuLaunchHostFunc(stream, note_order, (void *)"x"));
    OK(launch(kernel("k_1ms"), stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
    MUST(strcmp(order, "") == 0); /* nothing ran yet */
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, side)); /* after the first */
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamSynchronize(side));
    MUST(strcmp(order, "xx") == 0);
}

static void
test_capture(void **state)
{
    in_process(captures);
}

/* ---- captures and calls of other threads ---- */

static CUstream captured;

/* What another thread calls while a stream is captured in `capture` mode, itself in
 * `thread` mode: what the call answers, and the end of the capture. */
static const struct trespass {
    const char *name;
    CUstreamCaptureMode capture, thread;
    CUresult call, end;
} trespasses[] = {
    { "global, unsafe call", CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL,
      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED },
    { "global, relaxed thread", CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_SUCCESS,
      CUDA_SUCCESS },
    { "global, thread for itself", CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
      CUDA_SUCCESS, CUDA_SUCCESS },
    { "thread-local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS,
      CUDA_SUCCESS },
    { "relaxed", CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS, CUDA_SUCCESS },
};

static void *
query_elsewhere(void *self)
{
    const struct trespass *row = self;
    CUstreamCaptureMode mode = row->thread;
    CUcontext context;
    CUstream own;

    OK(cuStreamGetCtx(captured, &context));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    MUST(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuStreamQuery(own) == row->call);
    return NULL;
}

static void
trespasses_on_captures(void)
{
    CUgraph graph;

    open_module();
    OK(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < BH_COUNT(trespasses); i++) {
        pthread_t thread;

        OK(cuStreamBeginCapture_v2(captured, trespasses[i].capture));
        OK(launch(kernel("k_1us"), captured));
        MUST(pthread_create(&thread, NULL, query_elsewhere, (void *)&trespasses[i]) == 0);
        MUST(pthread_join(thread, NULL) == 0);
        MUST(cuStreamEndCapture(captured, &graph) == trespasses[i].end);
    }
    OK(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuStreamSynchronize(captured) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    MUST(launch(kernel("k_1us"), captured) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    MUST(cuStreamEndCapture(captured, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    MUST(cuStreamEndCapture(captured, &graph) == CUDA_ERROR_ILLEGAL_STATE);
}

static void
test_capture_modes(void **state)
{
    in_process(trespasses_on_captures);
}

static uint64_t
pool(CUgraphMem_attribute attribute)
{
    uint64_t value;

    OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

/* Memory of graphs comes at launch, stays reserved when it is freed, and goes by a trim. */
static void
uses_graph_memory(void)
{
    const size_t bytes = (size_t)64 << 20;
    CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                         .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
                                          .bytesize = bytes };
    CUgraph graph;
    CUgraphNode alloc, end;
    CUgraphExec exec;
    size_t before, after, total;
    char text[6];

    open_module();
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    MUST(params.dptr != 0);
    OK(cuGraphAddMemFreeNode(&end, graph, &alloc, 1, params.dptr));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemGetInfo_v2(&before, &total));
    MUST(pool(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
    OK(cuGraphLaunch(exec, NULL));
    MUST(pool(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == bytes);
    MUST(pool(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
    MUST(pool(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == bytes);
    OK(cuMemGetInfo_v2(&after, &total));
    MUST(before - after == bytes);
    OK(cuGraphLaunch(exec, NULL));
    MUST(pool(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == bytes);
    OK(cuCtxSynchronize());
    OK(cuDeviceGraphMemTrim(0));
    MUST(pool(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
    OK(cuMemGetInfo_v2(&after, &total));
    MUST(before == after);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuGraphCreate(&graph, 0)); /* without a free: the memory can be used, and freed */
    OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    MUST(cuMemcpyHtoD_v2(params.dptr, "bytes", 6) == CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuMemcpyHtoD_v2(params.dptr + bytes - 6, "bytes", 6));
    OK(cuMemcpyDtoH_v2(text, params.dptr + bytes - 6, 6));
    MUST(strcmp(text, "bytes") == 0);
    MUST(cuGraphLaunch(exec, NULL) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(params.dptr));
    MUST(cuMemFree_v2(params.dptr) == CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(exec, NULL));
    MUST(pool(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == bytes);
}

static void
test_graph_memory(void **state)
{
    in_process(uses_graph_memory);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_graphs),
        TEST(test_capture),
        TEST(test_capture_modes),
        TEST(test_graph_memory),
    };

    return can_test_work() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
