#include "sim/cuda/work/work.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/work/graph.h"
#include "sim/cuda/memory/physical.h"
#include "sim/machine/folder.h"
#include "sim/machine/session.h"

#define STREAM_MAGIC 0x42485354u
#define OWN_MAX 8 /* contexts whose per-thread streams a thread remembers */

/* What a context has at work. */
struct sim_cuda_work {
    uint64_t id;
    struct sim_queue *queue;
    struct CUstream_st legacy;
    struct CUstream_st *streams;
    uint64_t used[SIM_TASK_STREAMS / 64]; /* numbers of streams */
};

static struct {
    pthread_mutex_t lock;
    struct CUstream_st *unused; /* kept, so that a stale handle is found out */
    uint64_t ids;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread struct {
    uint64_t work;
    struct CUstream_st *stream;
} own[OWN_MAX];

static __thread bool in_callback;

bool
sim_cuda_in_callback(void)
{
    return in_callback;
}

/* ---- streams of a context, under the lock ---- */

/* The lowest number that no stream has; past the last they are shared, which only means
 * that such streams wait for each other. */
static uint32_t
take_index(struct sim_cuda_work *work)
{
    for (uint32_t i = 0; i < SIM_TASK_STREAMS; i++)
        if ((work->used[i / 64] >> i % 64 & 1) == 0) {
            work->used[i / 64] |= 1ull << i % 64;
            return i;
        }
    return (uint32_t)(work->id % SIM_TASK_STREAMS);
}

static void
init_stream(struct CUstream_st *stream, struct CUctx_st *context, enum sim_task_order order)
{
    *stream = (struct CUstream_st) { .magic = STREAM_MAGIC,
                                     .context = context,
                                     .order = order,
                                     .id = ++all.ids,
                                     .index = take_index(context->work) };
}

static struct CUstream_st *
new_stream(struct CUctx_st *context, unsigned flags, int priority)
{
    struct CUstream_st *stream = all.unused;

    if (stream != NULL)
        all.unused = stream->next;
    else
        stream = malloc(sizeof(*stream));
    if (stream == NULL)
        return NULL;
    init_stream(stream, context,
                flags == CU_STREAM_NON_BLOCKING ? SIM_ORDER_FREE : SIM_ORDER_BLOCKING);
    stream->flags = flags;
    stream->priority = priority;
    stream->next = context->work->streams;
    context->work->streams = stream;
    return stream;
}

static void
retire_stream(struct CUstream_st *stream)
{
    stream->magic = 0;
    stream->next = all.unused;
    all.unused = stream;
}

static CUresult
open_work(struct CUctx_st *context)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(context->device, &device);
    struct sim_cuda_work *work = rc == CUDA_SUCCESS ? calloc(1, sizeof(*work)) : NULL;
    char folder[SIM_PATH_MAX];

    if (rc != CUDA_SUCCESS)
        return rc;
    if (work == NULL || !sim_folder_vram_path(&device.gpu, device.gi, folder)) {
        free(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    work->queue = sim_queue_open(folder, context->memory->slot);
    if (work->queue == NULL) {
        free(work);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    work->id = ++all.ids;
    context->work = work;
    init_stream(&work->legacy, context, SIM_ORDER_LEGACY);
    return CUDA_SUCCESS;
}

/* ---- from a context or a handle ---- */

CUresult
sim_cuda_queue(struct CUctx_st *context, struct sim_queue **ret_queue)
{
    struct sim_cuda_work *work = __atomic_load_n(&context->work, __ATOMIC_ACQUIRE);
    CUresult rc = CUDA_SUCCESS;

    if (work == NULL) {
        pthread_mutex_lock(&all.lock);
        if (context->work == NULL)
            rc = open_work(context);
        work = context->work;
        pthread_mutex_unlock(&all.lock);
    }
    if (rc != CUDA_SUCCESS)
        return rc;
    if (sim_queue_is_foreign(work->queue))
        return CUDA_ERROR_NOT_INITIALIZED;
    *ret_queue = work->queue;
    return CUDA_SUCCESS;
}

/* The calling thread's own stream in the context. */
static struct CUstream_st *
find_own(struct CUctx_st *context)
{
    struct CUstream_st *stream;
    unsigned at = 0;

    for (unsigned i = 0; i < OWN_MAX; i++)
        if (own[i].work == context->work->id)
            return own[i].stream;
    while (at + 1 < OWN_MAX && own[at].work != 0)
        at++;
    pthread_mutex_lock(&all.lock);
    stream = new_stream(context, CU_STREAM_DEFAULT, 0);
    pthread_mutex_unlock(&all.lock);
    own[at].work = context->work->id;
    own[at].stream = stream;
    return stream;
}

CUresult
sim_cuda_find_stream(struct sim_stream_name name, struct CUstream_st **ret_stream)
{
    struct CUctx_st *context;
    struct sim_queue *queue;
    bool is_own = name.handle == CU_STREAM_PER_THREAD || (name.handle == NULL && name.own);
    CUresult rc = CUDA_SUCCESS;

    if (in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    if (name.handle != NULL && name.handle != CU_STREAM_LEGACY && !is_own) {
        if (name.handle->magic != STREAM_MAGIC)
            return CUDA_ERROR_INVALID_HANDLE;
        *ret_stream = name.handle;
        return CUDA_SUCCESS;
    }
    rc = sim_cuda_current(&context);
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_queue(context, &queue);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_stream = is_own ? find_own(context) : &context->work->legacy;
    return *ret_stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* ---- work ---- */

static void
note_last(struct CUstream_st *stream, uint64_t number)
{
    uint64_t last = __atomic_load_n(&stream->last, __ATOMIC_RELAXED);

    while (last < number &&
           !__atomic_compare_exchange_n(&stream->last, &last, number, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

CUresult
sim_cuda_submit(struct CUstream_st *stream, struct sim_order *order, uint64_t *ret_number)
{
    struct sim_queue *queue;
    CUresult rc = sim_cuda_queue(stream->context, &queue);
    uint64_t number;

    if (rc != CUDA_SUCCESS)
        return rc;
    order->work.stream = stream->index;
    order->work.order = (uint8_t)stream->order;
    order->work.priority = (int8_t)stream->priority;
    if (order->work.sms == 0)
        order->work.sms = SIM_TASK_ALL_SMS;
    number = sim_queue_submit(queue, order);
    note_last(stream, number);
    if (ret_number != NULL)
        *ret_number = number;
    return CUDA_SUCCESS;
}

static void
act_on_deed(void *self)
{
    const struct sim_deed *deed = self;

    in_callback = deed->type == CU_GRAPH_NODE_TYPE_HOST;
    deed->act(deed->self);
    in_callback = false;
}

static void
drop_deed(void *self, uint64_t ended_ns)
{
    struct sim_deed *deed = self;

    (void)ended_ns;
    if (deed->drop != NULL)
        deed->drop(deed->self);
    free(deed);
}

static CUresult
submit_cost(struct CUstream_st *stream, const struct sim_deed *deed)
{
    struct sim_order order = { .work = { .kind = SIM_TASK_RUN,
                                         .engine = (uint8_t)deed->engine,
                                         .sms = deed->sms,
                                         .cost_ns = deed->cost_ns } };

    return deed->cost_ns == 0 ? CUDA_SUCCESS : sim_cuda_submit(stream, &order, NULL);
}

static CUresult
submit_act(struct CUstream_st *stream, const struct sim_deed *deed)
{
    struct sim_deed *copy = malloc(sizeof(*copy));
    struct sim_order order = { .work.kind =
                                   deed->act != NULL ? SIM_TASK_HOST : SIM_TASK_MARK,
                               .act = act_on_deed,
                               .ended = drop_deed,
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
refuse(const struct sim_deed *deed)
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
    rc = submit_cost(stream, deed);
    if (rc == CUDA_SUCCESS && (deed->act != NULL || deed->drop != NULL))
        rc = submit_act(stream, deed);
    if (rc != CUDA_SUCCESS)
        refuse(deed);
    return rc;
}

CUresult
sim_cuda_do(struct sim_stream_name name, const struct sim_deed *deed)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS)
        return sim_cuda_submit_deed(stream, deed);
    refuse(deed);
    return rc;
}

/* The number to wait for.  What the legacy stream waits for is in other streams, too. */
static CUresult
find_last(struct CUstream_st *stream, uint64_t *ret_number)
{
    struct sim_order mark = { .work.kind = SIM_TASK_MARK };

    if (stream->order == SIM_ORDER_LEGACY)
        return sim_cuda_submit(stream, &mark, ret_number);
    *ret_number = __atomic_load_n(&stream->last, __ATOMIC_ACQUIRE);
    return CUDA_SUCCESS;
}

/* Check that a stream may be asked about, and find the number it stands at. */
static CUresult
begin_asking(struct sim_stream_name name, struct sim_queue **ret_queue,
             uint64_t *ret_number)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS)
        rc = sim_capture_check_stream(stream);
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_capture_check();
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_queue(stream->context, ret_queue);
    return rc == CUDA_SUCCESS ? find_last(stream, ret_number) : rc;
}

CUresult
sim_cuda_wait(struct sim_stream_name name)
{
    struct sim_queue *queue;
    uint64_t number;
    CUresult rc = begin_asking(name, &queue, &number);

    if (rc == CUDA_SUCCESS)
        sim_queue_wait(queue, number);
    return rc;
}

static CUresult
query(struct sim_stream_name name)
{
    struct sim_queue *queue;
    uint64_t number;
    CUresult rc = begin_asking(name, &queue, &number);

    if (rc != CUDA_SUCCESS)
        return rc;
    return sim_queue_ended(queue, number, NULL) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult
sim_cuda_work_wait(struct CUctx_st *context)
{
    CUresult rc = in_callback ? CUDA_ERROR_NOT_PERMITTED : sim_cuda_capture_check();
    struct sim_queue *queue;

    if (rc != CUDA_SUCCESS || __atomic_load_n(&context->work, __ATOMIC_ACQUIRE) == NULL)
        return rc;
    rc = sim_cuda_queue(context, &queue);
    if (rc == CUDA_SUCCESS)
        sim_queue_drain(queue);
    return rc;
}

void
sim_cuda_work_drop(struct CUctx_st *context)
{
    struct sim_cuda_work *work = context->work;

    if (work == NULL)
        return;
    sim_queue_close(work->queue);
    pthread_mutex_lock(&all.lock);
    while (work->streams != NULL) {
        struct CUstream_st *stream = work->streams;

        work->streams = stream->next;
        sim_capture_leave(stream);
        retire_stream(stream);
    }
    context->work = NULL;
    pthread_mutex_unlock(&all.lock);
    free(work);
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
create(CUstream *stream, unsigned flags, int priority)
{
    struct CUctx_st *context;
    struct sim_queue *queue;
    CUresult rc = in_callback ? CUDA_ERROR_NOT_PERMITTED : sim_cuda_current(&context);

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
    pthread_mutex_lock(&all.lock);
    *stream = new_stream(context, flags, priority);
    pthread_mutex_unlock(&all.lock);
    return *stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUDA_API CUresult
cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return create(stream, flags, 0);
}

CUDA_API CUresult
cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    return create(stream, flags, priority);
}

/* Its work goes on. */
CUDA_API CUresult
cuStreamDestroy_v2(CUstream stream)
{
    struct sim_cuda_work *work;

    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
        stream->magic != STREAM_MAGIC)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&all.lock);
    work = stream->context->work;
    for (struct CUstream_st **link = &work->streams; *link != NULL; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    work->used[stream->index / 64] &= ~(1ull << stream->index % 64);
    sim_capture_leave(stream);
    retire_stream(stream);
    pthread_mutex_unlock(&all.lock);
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuStreamDestroy(CUstream stream)
{
    return cuStreamDestroy_v2(stream);
}

static CUresult
get_priority(struct sim_stream_name name, int *priority)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS && priority == NULL)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        *priority = stream->priority;
    return rc;
}

static CUresult
get_flags(struct sim_stream_name name, unsigned *flags)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS && flags == NULL)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        *flags = stream->flags;
    return rc;
}

static CUresult
get_context(struct sim_stream_name name, CUcontext *context)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS && context == NULL)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        *context = stream->context;
    return rc;
}

static CUresult
get_id(struct sim_stream_name name, unsigned long long *id)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS && id == NULL)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        *id = stream->id;
    return rc;
}

struct host_function {
    CUhostFn function;
    CUstreamCallback callback; /* instead */
    CUstream stream;
    void *self;
};

static void
call_host_function(void *self)
{
    const struct host_function *host = self;

    if (host->callback != NULL)
        host->callback(host->stream, CUDA_SUCCESS, host->self);
    else
        host->function(host->self);
}

static CUresult
add_host_function(struct sim_stream_name name, const struct host_function *wanted)
{
    struct host_function *host = malloc(sizeof(*host));

    if (host == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *host = *wanted;
    return sim_cuda_do(name, &(struct sim_deed) { .type = CU_GRAPH_NODE_TYPE_HOST,
                                                  .act = call_host_function,
                                                  .drop = free,
                                                  .self = host });
}

static CUresult
launch_host(struct sim_stream_name name, CUhostFn function, void *self)
{
    struct host_function host = { .function = function, .self = self };

    return function == NULL ? CUDA_ERROR_INVALID_VALUE : add_host_function(name, &host);
}

/* Callbacks cannot be captured. */
static CUresult
add_callback(struct sim_stream_name name, CUstreamCallback callback, void *self,
             unsigned flags)
{
    struct host_function host = { NULL, callback, name.handle, self };
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS && (callback == NULL || flags != 0))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        rc = sim_capture_check_stream(stream);
    return rc == CUDA_SUCCESS ? add_host_function(name, &host) : rc;
}

/* Each call in two forms: what its NULL stream is. */
#define BOTH(name, call, ...)                                                              \
    CUDA_API CUresult name(CUstream stream, ##__VA_ARGS__)                                 \
    {                                                                                      \
        const struct sim_stream_name s = { stream, false };                                \
        return call;                                                                       \
    }                                                                                      \
    CUDA_API CUresult name##_ptsz(CUstream stream, ##__VA_ARGS__)                          \
    {                                                                                      \
        const struct sim_stream_name s = { stream, true };                                 \
        return call;                                                                       \
    }

BOTH(cuStreamQuery, query(s))
BOTH(cuStreamSynchronize, sim_cuda_wait(s))
BOTH(cuStreamGetPriority, get_priority(s, priority), int *priority)
BOTH(cuStreamGetFlags, get_flags(s, flags), unsigned int *flags)
BOTH(cuStreamGetCtx, get_context(s, context), CUcontext *context)
BOTH(cuStreamGetId, get_id(s, id), unsigned long long *id)
BOTH(cuLaunchHostFunc, launch_host(s, function, self), CUhostFn function, void *self)
BOTH(cuStreamAddCallback, add_callback(s, callback, self, flags), CUstreamCallback callback,
     void *self, unsigned int flags)
