/* Streams that are captured: what would be done becomes nodes of a graph.
 *
 * A capture begins in one stream; others take part from when they wait for an event of it.
 * One lock for all captures; while there is none, calls only look at a counter. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/work/graph.h"

struct member {
    struct member *next;
    struct CUstream_st *stream;
    struct sim_tail tail;
};

struct sim_capture {
    struct sim_capture *next;
    uint64_t id;
    CUgraph graph;
    struct CUstream_st *origin;
    struct member *members;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid;
};

static struct {
    pthread_mutex_t lock;
    struct sim_capture *first;
    uint64_t ids;
    _Atomic unsigned count;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- nodes that are depended on ---- */

static void
capture_clear_tail(struct sim_tail *tail)
{
    free(tail->node);
    *tail = (struct sim_tail){ 0 };
}

static bool
capture_extend_tail(struct sim_tail *tail, const struct sim_tail *more)
{
    CUgraphNode *node = realloc(tail->node, (tail->count + more->count + 1) * sizeof(CUgraphNode));

    if (node == NULL)
        return false;
    tail->node = node;
    for (size_t i = 0; i < more->count; i++) {
        size_t at = 0;

        while (at < tail->count && tail->node[at] != more->node[i])
            at++;
        tail->node[at] = more->node[i];
        tail->count += at == tail->count;
    }
    return true;
}

/* ---- captures, under the lock ---- */

static struct member *
capture_find_member(const struct sim_capture *capture, const struct CUstream_st *stream)
{
    struct member *member = capture->members;

    while (member != NULL && member->stream != stream)
        member = member->next;
    return member;
}

static struct member *
capture_add_member(struct sim_capture *capture, struct CUstream_st *stream)
{
    struct member *member = calloc(1, sizeof(*member));

    if (member == NULL)
        return NULL;
    member->stream = stream;
    member->next = capture->members;
    capture->members = member;
    stream->capture = capture;
    return member;
}

static void
end_capture(struct sim_capture *capture)
{
    struct sim_capture **link = &all.first;

    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    while (capture->members != NULL) {
        struct member *member = capture->members;

        capture->members = member->next;
        if (member->stream != NULL)
            member->stream->capture = NULL;
        capture_clear_tail(&member->tail);
        free(member);
    }
    sim_graph_free(capture->graph);
    free(capture);
    all.count--;
}

static struct sim_capture *
find_capture(uint64_t id)
{
    struct sim_capture *capture = all.first;

    while (capture != NULL && capture->id != id)
        capture = capture->next;
    return capture;
}

/* Append to what the stream has captured. */
static CUresult
capture_add_node(struct CUstream_st *stream, struct sim_payload *payload)
{
    struct member *member = capture_find_member(stream->capture, stream);
    CUgraphNode node;
    CUresult rc = sim_graph_add(stream->capture->graph, member->tail, payload, &node);

    if (rc != CUDA_SUCCESS)
        return rc;
    member->tail.count = 0;
    return capture_extend_tail(&member->tail, &(struct sim_tail){ &node, 1 }) ? CUDA_SUCCESS
                                                                              : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Work of the legacy stream would make streams of its context wait, also captured ones. */
static CUresult
capture_check_legacy(const struct CUstream_st *stream)
{
    CUresult rc = CUDA_SUCCESS;

    if (stream->order != SIM_ORDER_LEGACY)
        return rc;
    for (struct sim_capture *capture = all.first; capture != NULL; capture = capture->next)
        for (const struct member *m = capture->members; m != NULL; m = m->next)
            if (m->stream != NULL && m->stream->context == stream->context
                && m->stream->order == SIM_ORDER_BLOCKING) {
                capture->invalid = true;
                rc = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            }
    return rc;
}

/* ---- what other files ask ---- */

CUresult
sim_capture_take(struct CUstream_st *stream, const struct sim_deed *deed, bool *ret_taken)
{
    CUresult rc = CUDA_SUCCESS;
    struct sim_payload *payload;

    *ret_taken = false;
    if (all.count == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&all.lock);
    if (stream->capture == NULL) {
        rc = capture_check_legacy(stream);
    } else if (stream->capture->invalid) {
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else {
        *ret_taken = true;
        payload = sim_payload_new(deed);
        rc = payload == NULL ? CUDA_ERROR_OUT_OF_MEMORY : capture_add_node(stream, payload);
    }
    pthread_mutex_unlock(&all.lock);
    if (rc != CUDA_SUCCESS && !*ret_taken && deed->drop != NULL)
        deed->drop(deed->self);
    return rc;
}

/* Under the lock, of a stream that is captured. */
static CUresult
capture_add_memory(struct CUstream_st *stream, struct sim_capture_memory *memory)
{
    const struct sim_deed deed = { .type = memory->type };
    struct sim_payload *payload = sim_payload_new(&deed);
    CUresult rc = CUDA_SUCCESS;

    if (payload == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    payload->device = memory->device;
    payload->bytes = memory->bytes;
    payload->address = memory->address;
    if (memory->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        rc = sim_graph_memory_reserve(payload);
    if (rc != CUDA_SUCCESS) {
        payload->deed.type = CU_GRAPH_NODE_TYPE_EMPTY; /* it has no memory to forget */
        sim_payload_release(payload);
        return rc;
    }
    memory->address = payload->address;
    return capture_add_node(stream, payload);
}

CUresult
sim_capture_take_memory(struct sim_stream_name name, struct sim_capture_memory *memory, bool *ret_taken)
{
    struct CUstream_st *stream;
    CUresult rc;

    *ret_taken = false;
    if (all.count == 0)
        return CUDA_SUCCESS;
    rc = sim_cuda_find_stream(name, &stream);
    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&all.lock);
    *ret_taken = stream->capture != NULL;
    if (!*ret_taken)
        rc = capture_check_legacy(stream);
    else if (stream->capture->invalid)
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else
        rc = capture_add_memory(stream, memory);
    pthread_mutex_unlock(&all.lock);
    return rc;
}

void
sim_mark_clear(struct sim_mark *mark)
{
    capture_clear_tail(&mark->tail);
    mark->capture = 0;
}

CUresult
sim_capture_mark(struct CUstream_st *stream, struct sim_mark *mark)
{
    CUresult rc = CUDA_SUCCESS;

    if (all.count == 0 && mark->capture == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&all.lock);
    sim_mark_clear(mark);
    if (stream->capture == NULL) {
        rc = capture_check_legacy(stream);
    } else if (stream->capture->invalid) {
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else {
        mark->capture = stream->capture->id;
        if (!capture_extend_tail(&mark->tail, &capture_find_member(stream->capture, stream)->tail))
            rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&all.lock);
    return rc;
}

/* Under the lock: `capture` is the event's, or NULL. */
static CUresult
capture_join(struct CUstream_st *stream, struct sim_capture *capture, const struct sim_mark *mark)
{
    struct member *member;

    if (stream->capture != NULL && stream->capture != capture) {
        /* a captured stream waits for what is not captured, or is captured elsewhere */
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (capture == NULL)
        return CUDA_ERROR_CAPTURED_EVENT; /* of a capture that is over */
    if (capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->order == SIM_ORDER_LEGACY) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    member =
        stream->capture == NULL ? capture_add_member(capture, stream) : capture_find_member(capture, stream);
    return member != NULL && capture_extend_tail(&member->tail, &mark->tail) ? CUDA_SUCCESS
                                                                             : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
sim_capture_join(struct CUstream_st *stream, const struct sim_mark *mark, bool *ret_taken)
{
    CUresult rc = CUDA_SUCCESS;

    *ret_taken = false;
    if (all.count == 0 && mark->capture == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&all.lock);
    if (stream->capture != NULL || mark->capture != 0) {
        *ret_taken = true;
        rc = capture_join(stream, mark->capture == 0 ? NULL : find_capture(mark->capture), mark);
    } else {
        rc = capture_check_legacy(stream);
    }
    pthread_mutex_unlock(&all.lock);
    return rc;
}

CUresult
sim_capture_check_stream(struct CUstream_st *stream)
{
    CUresult rc = CUDA_SUCCESS;

    if (all.count == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&all.lock);
    if (stream->capture != NULL) {
        stream->capture->invalid = true;
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else {
        rc = capture_check_legacy(stream);
    }
    pthread_mutex_unlock(&all.lock);
    return rc;
}

/* Does the capture forbid this thread what is potentially unsafe? */
static bool
capture_forbids(const struct sim_capture *capture)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    return pthread_equal(capture->thread, pthread_self())
           || (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL
               && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult
sim_cuda_capture_check(void)
{
    CUresult rc = CUDA_SUCCESS;

    if (all.count == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&all.lock);
    for (struct sim_capture *capture = all.first; capture != NULL; capture = capture->next)
        if (capture_forbids(capture)) {
            capture->invalid = true;
            rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&all.lock);
    return rc;
}

void
sim_capture_leave(struct CUstream_st *stream)
{
    if (all.count == 0)
        return;
    pthread_mutex_lock(&all.lock);
    if (stream->capture != NULL) {
        struct sim_capture *capture = stream->capture;

        capture->invalid = true;
        capture_find_member(capture, stream)->stream = NULL;
        stream->capture = NULL;
        if (capture->origin == stream)
            end_capture(capture);
    }
    pthread_mutex_unlock(&all.lock);
}

/* ---- the calls ---- */

/* Under the lock. */
static CUresult
capture_start(struct CUstream_st *stream, CUstreamCaptureMode mode)
{
    struct sim_capture *capture;

    if (stream->capture != NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    capture = calloc(1, sizeof(*capture));
    if (capture == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *capture = (struct sim_capture){ .next = all.first,
                                     .id = ++all.ids,
                                     .graph = sim_graph_new(),
                                     .origin = stream,
                                     .mode = mode,
                                     .thread = pthread_self() };
    all.first = capture;
    all.count++;
    if (capture->graph != NULL && capture_add_member(capture, stream) != NULL)
        return CUDA_SUCCESS;
    end_capture(capture);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
capture_begin(struct sim_stream_name name, CUstreamCaptureMode mode)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc == CUDA_SUCCESS && mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS && stream->order == SIM_ORDER_LEGACY)
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&all.lock);
    rc = capture_start(stream, mode);
    pthread_mutex_unlock(&all.lock);
    return rc;
}

/* Everything that was captured is something that the origin waits for? */
static bool
capture_is_joined(const struct sim_capture *capture)
{
    const struct sim_tail *tail = &capture_find_member(capture, capture->origin)->tail;

    for (size_t i = 0; i < capture->graph->count; i++) {
        size_t at = 0;

        if (capture->graph->node[i]->has_dependents)
            continue;
        while (at < tail->count && tail->node[at] != capture->graph->node[i])
            at++;
        if (at == tail->count)
            return false;
    }
    return true;
}

/* Under the lock. */
static CUresult
capture_finish(struct CUstream_st *stream, CUgraph *ret_graph)
{
    struct sim_capture *capture = stream->capture;
    CUresult rc = CUDA_SUCCESS;

    if (capture == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (capture->invalid)
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!capture_is_joined(capture))
        rc = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (rc == CUDA_SUCCESS) {
        *ret_graph = capture->graph;
        capture->graph = NULL;
    }
    end_capture(capture);
    return rc;
}

static CUresult
capture_end(struct sim_stream_name name, CUgraph *graph)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = NULL;
    pthread_mutex_lock(&all.lock);
    rc = capture_finish(stream, graph);
    pthread_mutex_unlock(&all.lock);
    return rc;
}

/* What a stream's capture is like; any pointer may be NULL but `status`. */
struct wanted {
    CUstreamCaptureStatus *status;
    uint64_t *id;
    CUgraph *graph;
    const CUgraphNode **dependencies;
    const CUgraphEdgeData **edges;
    size_t *count;
};

static void
describe_capture(const struct CUstream_st *stream, const struct wanted *wanted)
{
    const struct sim_capture *capture = stream->capture;
    const struct sim_tail *tail =
        capture == NULL || capture->invalid ? NULL : &capture_find_member(capture, stream)->tail;

    *wanted->status = capture == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
                      : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                         : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (tail == NULL)
        return;
    if (wanted->id != NULL)
        *wanted->id = capture->id;
    if (wanted->graph != NULL)
        *wanted->graph = capture->graph;
    if (wanted->dependencies != NULL)
        *wanted->dependencies = tail->node;
    if (wanted->edges != NULL)
        *wanted->edges = NULL;
    if (wanted->count != NULL)
        *wanted->count = tail->count;
}

static CUresult
capture_describe_stream(struct sim_stream_name name, const struct wanted *wanted)
{
    struct CUstream_st *stream;
    CUresult rc = sim_cuda_find_stream(name, &stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (wanted->status == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&all.lock);
    if (stream->capture == NULL)
        rc = capture_check_legacy(stream);
    if (rc == CUDA_SUCCESS)
        describe_capture(stream, wanted);
    pthread_mutex_unlock(&all.lock);
    return rc;
}

CUDA_API CUresult
cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = thread_mode;

    if (mode == NULL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

#define IN_BOTH_FORMS(suffix, own)                                                                           \
    CUDA_API CUresult cuStreamBeginCapture##suffix(CUstream stream)                                          \
    {                                                                                                        \
        return capture_begin((struct sim_stream_name){ stream, own }, CU_STREAM_CAPTURE_MODE_GLOBAL);        \
    }                                                                                                        \
    CUDA_API CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, CUstreamCaptureMode mode)             \
    {                                                                                                        \
        return capture_begin((struct sim_stream_name){ stream, own }, mode);                                 \
    }                                                                                                        \
    CUDA_API CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph *graph)                            \
    {                                                                                                        \
        return capture_end((struct sim_stream_name){ stream, own }, graph);                                  \
    }                                                                                                        \
    CUDA_API CUresult cuStreamIsCapturing##suffix(CUstream stream, CUstreamCaptureStatus *status)            \
    {                                                                                                        \
        return capture_describe_stream((struct sim_stream_name){ stream, own },                              \
                                       &(struct wanted){ .status = status });                                \
    }                                                                                                        \
    CUDA_API CUresult cuStreamGetCaptureInfo##suffix(CUstream stream, CUstreamCaptureStatus *status,         \
                                                     uint64_t *id)                                           \
    {                                                                                                        \
        return capture_describe_stream((struct sim_stream_name){ stream, own },                              \
                                       &(struct wanted){ .status = status, .id = id });                      \
    }                                                                                                        \
    CUDA_API CUresult cuStreamGetCaptureInfo_v2##suffix(CUstream stream, CUstreamCaptureStatus *status,      \
                                                        uint64_t *id, CUgraph *graph,                        \
                                                        const CUgraphNode **dependencies, size_t *count)     \
    {                                                                                                        \
        return capture_describe_stream((struct sim_stream_name){ stream, own },                              \
                                       &(struct wanted){ status, id, graph, dependencies, NULL, count });    \
    }                                                                                                        \
    CUDA_API CUresult cuStreamGetCaptureInfo_v3##suffix(                                                     \
        CUstream stream, CUstreamCaptureStatus *status, uint64_t *id, CUgraph *graph,                        \
        const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count)                      \
    {                                                                                                        \
        return capture_describe_stream((struct sim_stream_name){ stream, own },                              \
                                       &(struct wanted){ status, id, graph, dependencies, edges, count });   \
    }

IN_BOTH_FORMS(, false)
IN_BOTH_FORMS(_ptsz, true)
