#include "sim/cuda/work/streams.h"

#include <pthread.h>
#include <stdlib.h>

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

static __thread bool in_callback; /* the thread calls the program */

bool
sim_cuda_in_callback(void)
{
    return in_callback;
}

void
sim_streams_call_program(void (*function)(void *self), void *self)
{
    in_callback = true;
    function(self);
    in_callback = false;
}

/* ---- streams of a context, under the lock ---- */

/* The lowest number that no stream has; past the last they are shared, which only means
 * that such streams wait for each other. */
static uint32_t
streams_take_index(struct sim_cuda_work *work)
{
    for (uint32_t i = 0; i < SIM_TASK_STREAMS; i++)
        if ((work->used[i / 64] >> i % 64 & 1) == 0) {
            work->used[i / 64] |= 1ull << i % 64;
            return i;
        }
    return (uint32_t)(work->id % SIM_TASK_STREAMS);
}

static void
streams_init(struct CUstream_st *stream, struct CUctx_st *context, enum sim_task_order order)
{
    *stream = (struct CUstream_st){ .magic = STREAM_MAGIC,
                                    .context = context,
                                    .order = order,
                                    .id = ++all.ids,
                                    .index = streams_take_index(context->work) };
}

static struct CUstream_st *
streams_new(struct CUctx_st *context, unsigned flags, int priority)
{
    struct CUstream_st *stream = all.unused;

    if (stream != NULL)
        all.unused = stream->next;
    else
        stream = malloc(sizeof(*stream));
    if (stream == NULL)
        return NULL;
    streams_init(stream, context, flags == CU_STREAM_NON_BLOCKING ? SIM_ORDER_FREE : SIM_ORDER_BLOCKING);
    stream->flags = flags;
    stream->priority = priority;
    stream->next = context->work->streams;
    context->work->streams = stream;
    return stream;
}

static CUresult
streams_open(struct CUctx_st *context)
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
    streams_init(&work->legacy, context, SIM_ORDER_LEGACY);
    return CUDA_SUCCESS;
}

struct CUstream_st *
sim_streams_new(struct CUctx_st *context, unsigned flags, int priority)
{
    struct CUstream_st *stream;

    pthread_mutex_lock(&all.lock);
    stream = streams_new(context, flags, priority);
    pthread_mutex_unlock(&all.lock);
    return stream;
}

/* ---- and their end ---- */

void
sim_streams_close(struct CUctx_st *context)
{
    sim_queue_close(context->work->queue);
}

struct CUstream_st *
sim_streams_first(struct CUctx_st *context)
{
    struct CUstream_st *stream;

    pthread_mutex_lock(&all.lock);
    stream = context->work->streams;
    pthread_mutex_unlock(&all.lock);
    return stream;
}

bool
sim_streams_has(const struct CUstream_st *stream)
{
    return stream->magic == STREAM_MAGIC;
}

void
sim_streams_remove(struct CUstream_st *stream)
{
    struct sim_cuda_work *work;

    pthread_mutex_lock(&all.lock);
    work = stream->context->work;
    for (struct CUstream_st **link = &work->streams; *link != NULL; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    work->used[stream->index / 64] &= ~(1ull << stream->index % 64);
    pthread_mutex_unlock(&all.lock);
}

void
sim_streams_retire(struct CUstream_st *stream)
{
    pthread_mutex_lock(&all.lock);
    stream->magic = 0;
    stream->next = all.unused;
    all.unused = stream;
    pthread_mutex_unlock(&all.lock);
}

void
sim_streams_free(struct CUctx_st *context)
{
    struct sim_cuda_work *work = context->work;

    pthread_mutex_lock(&all.lock);
    context->work = NULL;
    pthread_mutex_unlock(&all.lock);
    free(work);
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
            rc = streams_open(context);
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
streams_find_own(struct CUctx_st *context)
{
    struct CUstream_st *stream;
    unsigned at = 0;

    for (unsigned i = 0; i < OWN_MAX; i++)
        if (own[i].work == context->work->id)
            return own[i].stream;
    while (at + 1 < OWN_MAX && own[at].work != 0)
        at++;
    stream = sim_streams_new(context, CU_STREAM_DEFAULT, 0);
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
        if (!sim_streams_has(name.handle))
            return CUDA_ERROR_INVALID_HANDLE;
        *ret_stream = name.handle;
        return CUDA_SUCCESS;
    }
    rc = sim_cuda_current(&context);
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_queue(context, &queue);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_stream = is_own ? streams_find_own(context) : &context->work->legacy;
    return *ret_stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* ---- orders ---- */

static void
streams_note_last(struct CUstream_st *stream, uint64_t number)
{
    uint64_t last = __atomic_load_n(&stream->last, __ATOMIC_RELAXED);

    while (last < number
           && !__atomic_compare_exchange_n(&stream->last, &last, number, true, __ATOMIC_RELEASE,
                                           __ATOMIC_RELAXED)) {
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
    streams_note_last(stream, number);
    if (ret_number != NULL)
        *ret_number = number;
    return CUDA_SUCCESS;
}
