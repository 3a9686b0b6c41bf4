/* Work in streams: deeds, and the calls about streams. */
#include "sim/cuda/work/work.h"

#include <stdlib.h>

#include "sim/cuda/work/graph.h"

static void
work_act_on_deed(void *self)
{
    const struct sim_deed *deed = self;

    if (deed->type == CU_GRAPH_NODE_TYPE_HOST)
        sim_streams_call_program(deed->act, deed->self);
    else
        deed->act(deed->self);
}

static void
work_drop_deed(void *self, uint64_t ended_ns)
{
    struct sim_deed *deed = self;

    if (deed->drop != NULL)
        deed->drop(deed->self);
    free(deed);
}

static CUresult
work_submit_cost(struct CUstream_st *stream, const struct sim_deed *deed)
{
    struct sim_order order = { .work = { .kind = SIM_TASK_RUN,
                                         .engine = (uint8_t)deed->engine,
                                         .sms = deed->sms,
                                         .cost_ns = deed->cost_ns } };

    return deed->cost_ns == 0 ? CUDA_SUCCESS : sim_cuda_submit(stream, &order, NULL);
}

static CUresult
work_submit_act(struct CUstream_st *stream, const struct sim_deed *deed)
{
    struct sim_deed *copy = malloc(sizeof(*copy));
    struct sim_order order = { .work.kind = deed->act != NULL ? SIM_TASK_HOST : SIM_TASK_MARK,
                               .act = work_act_on_deed,
                               .ended = work_drop_deed,
                               .self = copy };
    CUresult rc;

    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = *deed;
    rc = sim_cuda_submit(stream, &order, NULL);
    if (rc != CUDA_SUCCESS)
        free(copy);
    return rc;
}

static void
work_refuse(const struct sim_deed *deed)
{
    if (deed->drop != NULL)
        deed->drop(deed->self);
}

CUresult
sim_cuda_submit_deed(struct CUstream_st *stream, const struct sim_deed *deed)
{
    bool taken;
    CUresult rc = sim_capture_take(stream, deed, &taken);

    if (rc != CUDA_SUCCESS || taken)
        return rc;
    rc = work_submit_cost(stream, deed);
    if (rc == CUDA_SUCCESS && (deed->act != NULL || deed->drop != NULL))
        rc = work_submit_act(stream, deed);
    if (rc != CUDA_SUCCESS)
        work_refuse(deed);
    return rc;
}

CUresult
sim_cuda_do(struct sim_stream_name name, const struct sim_deed *deed)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS)
        return sim_cuda_submit_deed(stream, deed);
    work_refuse(deed);
    return rc;
}

/* The number to wait for.  What the legacy stream waits for is in other streams, too. */
static CUresult
work_find_last(struct CUstream_st *stream, uint64_t *ret_number)
{
    struct sim_order mark = { .work.kind = SIM_TASK_MARK };

    if (stream->order == SIM_ORDER_LEGACY)
        return sim_cuda_submit(stream, &mark, ret_number);
    *ret_number = __atomic_load_n(&stream->last, __ATOMIC_ACQUIRE);
    return CUDA_SUCCESS;
}

/* Check that a stream may be asked about, and find the number it stands at. */
static CUresult
work_begin_asking(struct sim_stream_name name, struct sim_queue **ret_queue, uint64_t *ret_number)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS)
        rc = sim_capture_check_stream(stream);
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_capture_check();
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_queue(stream->context, ret_queue);
    return rc == CUDA_SUCCESS ? work_find_last(stream, ret_number) : rc;
}

CUresult
sim_cuda_wait(struct sim_stream_name name)
{
    struct sim_queue *queue;
    uint64_t number;
    CUresult rc = work_begin_asking(name, &queue, &number);

    if (rc == CUDA_SUCCESS)
        sim_queue_wait(queue, number);
    return rc;
}

static CUresult
work_query(struct sim_stream_name name)
{
    struct sim_queue *queue;
    uint64_t number;
    CUresult rc = work_begin_asking(name, &queue, &number);

    if (rc != CUDA_SUCCESS)
        return rc;
    return sim_queue_ended(queue, number, NULL) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult
sim_cuda_work_wait(struct CUctx_st *context)
{
    CUresult rc = sim_cuda_in_callback() ? CUDA_ERROR_NOT_PERMITTED : sim_cuda_capture_check();
    struct sim_queue *queue;

    if (rc != CUDA_SUCCESS || __atomic_load_n(&context->work, __ATOMIC_ACQUIRE) == NULL)
        return rc;
    rc = sim_cuda_queue(context, &queue);
    if (rc == CUDA_SUCCESS)
        sim_queue_drain(queue);
    return rc;
}

static void
work_end_stream(struct CUstream_st *stream)
{
    sim_streams_remove(stream);
    sim_capture_leave(stream);
    sim_streams_retire(stream);
}

void
sim_cuda_work_drop(struct CUctx_st *context)
{
    struct CUstream_st *stream;

    if (context->work == NULL)
        return;
    sim_streams_close(context);
    while ((stream = sim_streams_first(context)) != NULL)
        work_end_stream(stream);
    sim_streams_free(context);
}

/* ---- what copies and fills cost ---- */

/* Bytes in a microsecond, of an H100 SXM: the memory's 3.35 TB/s, of which a copy uses each
 * byte twice, and PCIe 5 x16 as far as it is reached. */
#define FILL_BYTES_US 3000000u
#define COPY_BYTES_US 1300000u
#define HOST_BYTES_US 55000u
#define COPY_START_NS 1500u

uint64_t
sim_cuda_copy_ns(CUgraphNodeType type, enum sim_engine engine, uint64_t bytes)
{
    uint64_t rate = engine != SIM_ENGINE_COMPUTE        ? HOST_BYTES_US
                    : type == CU_GRAPH_NODE_TYPE_MEMSET ? FILL_BYTES_US
                                                        : COPY_BYTES_US;

    return COPY_START_NS + bytes / rate * 1000 + bytes % rate * 1000 / rate;
}

/* ---- the calls ---- */

static CUresult
work_create(CUstream *stream, unsigned flags, int priority)
{
    struct CUctx_st *context;
    struct sim_queue *queue;
    CUresult rc = sim_cuda_in_callback() ? CUDA_ERROR_NOT_PERMITTED : sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (stream == NULL || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    rc = sim_cuda_queue(context, &queue);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (priority > 0)
        priority = 0;
    if (priority < SIM_PRIORITY_GREATEST)
        priority = SIM_PRIORITY_GREATEST;
    *stream = sim_streams_new(context, flags, priority);
    return *stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUDA_ROW(cuStreamCreate, (CUstream * stream, unsigned int flags), work_create(stream, flags, 0))
CUDA_ROW(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),
         work_create(stream, flags, priority))

/* The stream's pending work continues. */
CUDA_API CUresult
cuStreamDestroy_v2(CUstream stream)
{
    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD
        || !sim_streams_has(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    work_end_stream(stream);
    return CUDA_SUCCESS;
}

CUDA_ROW(cuStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))

struct host_function {
    CUhostFn function;
    CUstreamCallback callback; /* instead */
    CUstream stream;
    void *self;
};

static void
work_call_host_function(void *self)
{
    const struct host_function *host = self;

    if (host->callback != NULL)
        host->callback(host->stream, CUDA_SUCCESS, host->self);
    else
        host->function(host->self);
}

static CUresult
work_add_host_function(struct sim_stream_name name, const struct host_function *wanted)
{
    struct host_function *host = malloc(sizeof(*host));

    if (host == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *host = *wanted;
    return sim_cuda_do(name, &(struct sim_deed){ .type = CU_GRAPH_NODE_TYPE_HOST,
                                                 .act = work_call_host_function,
                                                 .drop = free,
                                                 .self = host });
}

static CUresult
work_launch_host(struct sim_stream_name name, CUhostFn function, void *self)
{
    struct host_function host = { .function = function, .self = self };

    return function == NULL ? CUDA_ERROR_INVALID_VALUE : work_add_host_function(name, &host);
}

/* Callbacks cannot be captured. */
static CUresult
work_add_callback(struct sim_stream_name name, CUstreamCallback callback, void *self, unsigned flags)
{
    struct host_function host = { NULL, callback, name.handle, self };
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS && (callback == NULL || flags != 0))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        rc = sim_capture_check_stream(stream);
    return rc == CUDA_SUCCESS ? work_add_host_function(name, &host) : rc;
}

/* Each call in two forms: what its NULL stream is. */
#define BOTH(name, call, ...)                                                                                \
    CUDA_API CUresult name(CUstream stream, ##__VA_ARGS__)                                                   \
    {                                                                                                        \
        const struct sim_stream_name s = { stream, false };                                                  \
        return call;                                                                                         \
    }                                                                                                        \
    CUDA_API CUresult name##_ptsz(CUstream stream, ##__VA_ARGS__)                                            \
    {                                                                                                        \
        const struct sim_stream_name s = { stream, true };                                                   \
        return call;                                                                                         \
    }

BOTH(cuStreamQuery, work_query(s))
BOTH(cuStreamSynchronize, sim_cuda_wait(s))

/* One that asks what a stream is. */
#define GET(name, type, value)                                                                               \
    static CUresult name##_of(struct sim_stream_name s, type *ret_value)                                     \
    {                                                                                                        \
        struct CUstream_st *stream;                                                                          \
        CUresult rc = sim_cuda_find_stream(s, &stream);                                                      \
                                                                                                             \
        if (rc == CUDA_SUCCESS && ret_value == NULL)                                                         \
            rc = CUDA_ERROR_INVALID_VALUE;                                                                   \
        if (rc == CUDA_SUCCESS)                                                                              \
            *ret_value = (value);                                                                            \
        return rc;                                                                                           \
    }                                                                                                        \
    BOTH(name, name##_of(s, ret_value), type *ret_value)

GET(cuStreamGetPriority, int, stream->priority)
GET(cuStreamGetFlags, unsigned int, stream->flags)
GET(cuStreamGetCtx, CUcontext, stream->context)
GET(cuStreamGetId, unsigned long long, stream->id)

BOTH(cuLaunchHostFunc, work_launch_host(s, function, self), CUhostFn function, void *self)
BOTH(cuStreamAddCallback, work_add_callback(s, callback, self, flags), CUstreamCallback callback, void *self,
     unsigned int flags)
