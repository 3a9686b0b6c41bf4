/* Events: moments in streams. */
#include <pthread.h>
#include <stdlib.h>

#include "sim/cuda/work/graph.h"

#define EVENT_MAGIC 0x42484556u
#define EVENT_FLAGS 7u

struct CUevent_st {
    uint32_t magic;
    unsigned flags;
    struct CUevent_st *next; /* of the unused ones: kept, so that stale handles show */
    struct CUctx_st *context;
    struct sim_mark mark; /* recorded in a stream that is captured */
    /* under the lock of its queue while it is pending */
    struct sim_queue *queue;
    uint64_t number, ended_ns;
    uint32_t recording; /* counts records, of which the last one matters */
    bool pending, recorded;
};

static struct {
    pthread_mutex_t lock;
    struct CUevent_st *unused;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CUresult
event_check(CUevent event)
{
    return event != NULL && event->magic == EVENT_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA_API CUresult
cuEventCreate(CUevent *event, unsigned int flags)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    struct CUevent_st *made;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (event == NULL || (flags & ~EVENT_FLAGS) != 0
        || ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&all.lock);
    made = all.unused;
    if (made != NULL)
        all.unused = made->next;
    pthread_mutex_unlock(&all.lock);
    if (made == NULL)
        made = calloc(1, sizeof(*made));
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct CUevent_st){
        .magic = EVENT_MAGIC, .flags = flags, .context = context, .recording = made->recording + 1
    };
    *event = made;
    return CUDA_SUCCESS;
}

/* ---- recording ---- */

/* One record of it; the event may have been recorded again, or destroyed, since. */
struct record {
    CUevent event;
    uint32_t recording;
    struct sim_queue *queue;
};

static void
event_note_begin(void *self, uint64_t number)
{
    struct record *record = self;
    CUevent event = record->event;

    record->recording = ++event->recording;
    event->queue = record->queue;
    event->number = number;
    event->pending = event->recorded = true;
}

static void
event_note_end(void *self, uint64_t ended_ns)
{
    struct record *record = self;
    CUevent event = record->event;

    if (event->recording == record->recording && event->pending) {
        event->ended_ns = ended_ns;
        event->pending = false;
    }
    free(record);
}

static CUresult
event_record_now(CUevent event, struct CUstream_st *stream)
{
    struct record *record = malloc(sizeof(*record));
    struct sim_order order = {
        .work.kind = SIM_TASK_MARK, .begun = event_note_begin, .ended = event_note_end, .self = record
    };
    CUresult rc;

    if (record == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    record->event = event;
    rc = sim_cuda_queue(stream->context, &record->queue);
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_submit(stream, &order, NULL);
    if (rc != CUDA_SUCCESS)
        free(record);
    return rc;
}

static CUresult
event_record(CUevent event, struct sim_stream_name name, unsigned flags)
{
    struct CUstream_st *stream;
    CUresult rc = event_check(event);

    if (rc == CUDA_SUCCESS && flags > 1)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_find_stream(name, &stream);
    if (rc == CUDA_SUCCESS && stream->context != event->context)
        rc = CUDA_ERROR_INVALID_HANDLE;
    if (rc == CUDA_SUCCESS)
        rc = sim_capture_mark(stream, &event->mark);
    if (rc != CUDA_SUCCESS || event->mark.capture != 0)
        return rc;
    return event_record_now(event, stream);
}

/* Each call in two forms: what its NULL stream is. */
#define RECORD(suffix, own)                                                                                  \
    CUDA_API CUresult cuEventRecord##suffix(CUevent event, CUstream stream)                                  \
    {                                                                                                        \
        return event_record(event, (struct sim_stream_name){ stream, own }, 0);                              \
    }                                                                                                        \
    CUDA_API CUresult cuEventRecordWithFlags##suffix(CUevent event, CUstream stream, unsigned int flags)     \
    {                                                                                                        \
        return event_record(event, (struct sim_stream_name){ stream, own }, flags);                          \
    }

RECORD(, false)
RECORD(_ptsz, true)

/* ---- asking ---- */

/* Bring it up to date: true when it has ended, or was never recorded. */
static bool
event_has_ended(CUevent event)
{
    uint64_t ended_ns = 0;
    bool ended = !event->pending;

    if (ended || sim_queue_is_foreign(event->queue))
        return ended;
    ended = sim_queue_ended(event->queue, event->number, &ended_ns);
    sim_queue_lock(event->queue);
    if (ended && event->pending && ended_ns != 0) {
        event->ended_ns = ended_ns;
        event->pending = false;
    }
    sim_queue_unlock(event->queue);
    return ended;
}

static CUresult
event_begin_asking(CUevent event)
{
    CUresult rc = event_check(event);

    if (rc == CUDA_SUCCESS && event->mark.capture != 0)
        rc = CUDA_ERROR_CAPTURED_EVENT;
    if (rc == CUDA_SUCCESS && sim_cuda_in_callback())
        rc = CUDA_ERROR_NOT_PERMITTED;
    return rc == CUDA_SUCCESS ? sim_cuda_capture_check() : rc;
}

CUDA_API CUresult
cuEventQuery(CUevent event)
{
    CUresult rc = event_begin_asking(event);

    if (rc != CUDA_SUCCESS)
        return rc;
    return event_has_ended(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* With CU_EVENT_BLOCKING_SYNC the real one sleeps and else spins; here all sleep. */
CUDA_API CUresult
cuEventSynchronize(CUevent event)
{
    CUresult rc = event_begin_asking(event);

    if (rc == CUDA_SUCCESS && !event_has_ended(event))
        sim_queue_wait(event->queue, event->number);
    return rc;
}

CUDA_API CUresult
cuEventDestroy_v2(CUevent event)
{
    CUresult rc = event_check(event);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_mark_clear(&event->mark);
    if (event->pending) {
        sim_queue_lock(event->queue);
        event->pending = false;
        event->recording++;
        sim_queue_unlock(event->queue);
    }
    pthread_mutex_lock(&all.lock);
    event->magic = 0;
    event->next = all.unused;
    all.unused = event;
    pthread_mutex_unlock(&all.lock);
    return CUDA_SUCCESS;
}

CUDA_ROW(cuEventDestroy, (CUevent event), cuEventDestroy_v2(event))

/* Half a microsecond is what the real one resolves. */
CUDA_API CUresult
cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    if (milliseconds == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (event_check(start) != CUDA_SUCCESS || event_check(end) != CUDA_SUCCESS || !start->recorded
        || !end->recorded || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!event_has_ended(start) || !event_has_ended(end))
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)((int64_t)(end->ended_ns - start->ended_ns) / 500) / 2000);
    return CUDA_SUCCESS;
}

CUDA_ROW(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),
         cuEventElapsedTime_v2(milliseconds, start, end))

/* ---- streams that wait ---- */

/* An event of another context: the queue's thread looks whether it has ended. */
static bool
poll_event(void *self)
{
    const struct record *wait = self;

    return wait->event->recording != wait->recording || event_has_ended(wait->event);
}

static void
event_end_wait(void *self, uint64_t ended_ns)
{
    free(self);
}

static CUresult
event_wait_elsewhere(struct CUstream_st *stream, CUevent event)
{
    struct record *wait = malloc(sizeof(*wait));
    struct sim_order order = {
        .work.kind = SIM_TASK_HOST, .poll = poll_event, .ended = event_end_wait, .self = wait
    };

    if (wait == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *wait = (struct record){ .event = event, .recording = event->recording };
    return sim_cuda_submit(stream, &order, NULL);
}

static CUresult
event_stream_wait(struct sim_stream_name name, CUevent event, unsigned flags)
{
    struct CUstream_st *stream;
    struct sim_order order = { .work.kind = SIM_TASK_AFTER };
    struct sim_queue *queue;
    CUresult rc = event_check(event);
    bool taken;

    if (rc == CUDA_SUCCESS && flags > 1)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_find_stream(name, &stream);
    if (rc == CUDA_SUCCESS)
        rc = sim_capture_join(stream, &event->mark, &taken);
    if (rc != CUDA_SUCCESS || taken || event_has_ended(event))
        return rc;
    rc = sim_cuda_queue(stream->context, &queue);
    if (rc == CUDA_SUCCESS && queue != event->queue)
        return event_wait_elsewhere(stream, event);
    order.work.after = event->number;
    return rc == CUDA_SUCCESS ? sim_cuda_submit(stream, &order, NULL) : rc;
}

CUDA_ROW(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
         event_stream_wait((struct sim_stream_name){ stream, false }, event, flags))
CUDA_ROW(cuStreamWaitEvent_ptsz, (CUstream stream, CUevent event, unsigned int flags),
         event_stream_wait((struct sim_stream_name){ stream, true }, event, flags))
