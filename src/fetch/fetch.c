#include "fetch/fetch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/lock.h"
#include "fetch/message.h"
#include "fetch/process.h"

enum { ARENA_MAX = 1 << 20 };
#define READY_WITHIN (5 * BH_NS_PER_S)

/* A question of a caller, which waits until it is DONE and frees the slot. */
enum fetch_slot_state { SLOT_FREE, SLOT_QUEUED, SLOT_SENT, SLOT_DONE };

struct fetch_slot {
    enum fetch_slot_state state;
    uint64_t call;
    const struct bh_https_request *request;
    struct bh_arena *arena;
    struct bh_https_response answer;
    bh_rc rc;
    bh_ns deadline; /* an answer must be there */
};

enum beginning { BEGINNING, BEGUN, FAILED };

struct bh_fetch {
    struct bh_fetch_command command;
    bh_ns span; /* from sending a question to the deadline */
    int wake;   /* an eventfd: there is something to do */
    pthread_t thread;
    struct bh_mutex mutex;
    struct bh_condition changed;

    /* shared, under mutex */
    struct fetch_slot slots[BH_FETCH_PENDING_MAX];
    uint64_t calls;
    bool stopping;
    enum beginning beginning;
    struct bh_err fault; /* why it FAILED */

    /* the thread's, under mutex except while it polls */
    struct bh_fetch_process process;
    bool ready, answered; /* this process */
    bh_ns ready_by, pause, paused_until;
};

/* ---- questions ---- */

static void
fetch_finish(struct bh_fetch *fetch, struct fetch_slot *slot, enum bh_https_cause cause)
{
    BH_ASSERT(bh_mutex_is_held(&fetch->mutex));
    slot->answer = (struct bh_https_response){ .body = "", .cause = cause };
    slot->rc = BH_OK;
    slot->state = SLOT_DONE;
    bh_condition_broadcast(&fetch->changed);
}

static void
fetch_finish_all(struct bh_fetch *fetch, enum fetch_slot_state state, enum bh_https_cause cause)
{
    for (size_t i = 0; i < BH_COUNT(fetch->slots); i++)
        if (fetch->slots[i].state == state)
            fetch_finish(fetch, &fetch->slots[i], cause);
}

static struct fetch_slot *
fetch_find_slot(struct bh_fetch *fetch, enum fetch_slot_state state)
{
    BH_ASSERT(bh_mutex_is_held(&fetch->mutex));
    for (size_t i = 0; i < BH_COUNT(fetch->slots); i++)
        if (fetch->slots[i].state == state)
            return &fetch->slots[i];
    return NULL;
}

static struct fetch_slot *
fetch_find_call(struct bh_fetch *fetch, uint64_t call)
{
    for (size_t i = 0; i < BH_COUNT(fetch->slots); i++)
        if (fetch->slots[i].state == SLOT_SENT && fetch->slots[i].call == call)
            return &fetch->slots[i];
    return NULL;
}

/* ---- the process ---- */

/* The process is of no more use. */
static void
fetch_lose_process(struct bh_fetch *fetch, bh_rc rc, const struct bh_err *why)
{
    bh_fetch_process_end(&fetch->process);
    fetch_finish_all(fetch, SLOT_SENT, BH_HTTPS_PROCESS);
    if (fetch->beginning == BEGINNING) {
        fetch->beginning = FAILED;
        fetch->fault = *why;
        fetch->fault.rc = rc;
        bh_condition_broadcast(&fetch->changed);
    }
    fetch->pause = fetch->answered ? 0 : fetch->pause == 0 ? BH_FETCH_PAUSE_MIN : 2 * fetch->pause;
    if (fetch->pause > BH_FETCH_PAUSE_MAX)
        fetch->pause = BH_FETCH_PAUSE_MAX;
    fetch->paused_until = bh_time_monotonic() + fetch->pause;
    BH_ASSERT(bh_mutex_is_held(&fetch->mutex));
}

static void
fetch_begin(struct bh_fetch *fetch)
{
    struct bh_err err;

    fetch->ready = fetch->answered = false;
    fetch->ready_by = bh_time_monotonic() + READY_WITHIN;
    if (bh_fetch_process_start(&fetch->command, &fetch->process, &err) != BH_OK)
        fetch_lose_process(fetch, BH_UNAVAILABLE, &err);
}

/* See to it that a process is there for what is queued. */
static void
fetch_ensure_process(struct bh_fetch *fetch)
{
    if (!fetch_find_slot(fetch, SLOT_QUEUED))
        return;
    if (fetch->process.pid && fetch->ready && !fetch_find_slot(fetch, SLOT_SENT)
        && bh_fetch_process_stale(&fetch->process))
        bh_fetch_process_end(&fetch->process);
    if (!fetch->process.pid && bh_time_monotonic() >= fetch->paused_until)
        fetch_begin(fetch);
    if (!fetch->process.pid)
        fetch_finish_all(fetch, SLOT_QUEUED, BH_HTTPS_PROCESS);
}

/* A process that hangs is one that has gone. */
static void
fetch_expire(struct bh_fetch *fetch)
{
    bh_ns now = bh_time_monotonic();
    bool late = fetch->process.pid && !fetch->ready && now >= fetch->ready_by;
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(fetch->slots); i++)
        late |= fetch->slots[i].state == SLOT_SENT && now >= fetch->slots[i].deadline;
    if (!late)
        return;
    bh_err_set(&err, BH_UNAVAILABLE, "bulkhead-fetch does not answer");
    fetch_lose_process(fetch, BH_UNAVAILABLE, &err);
}

/* ---- frames ---- */

static const char *
fetch_text_or_empty(const char *text)
{
    return text ? text : "";
}

static bh_rc
fetch_send_slot(struct bh_fetch *fetch, struct fetch_slot *slot, struct bh_err *err)
{
    const struct bh_https_request *request = slot->request;
    const struct bh_fetch_request ask = {
        .call = slot->call,
        .post = request->post,
        .url = request->url,
        .authorization = fetch_text_or_empty(request->authorization),
        .body = fetch_text_or_empty(request->body),
        .certificate = fetch_text_or_empty(request->certificate),
    };

    slot->state = SLOT_SENT;
    slot->deadline = bh_time_monotonic() + fetch->span;
    return bh_link_send(fetch->process.link, BH_FETCH_MSG_REQUEST,
                        bh_fetch_message_fields(BH_FETCH_MSG_REQUEST), &ask, err);
}

static void
fetch_send_queued(struct bh_fetch *fetch)
{
    struct fetch_slot *slot;
    struct bh_err err;

    while (fetch->process.pid && fetch->ready && (slot = fetch_find_slot(fetch, SLOT_QUEUED)))
        if (fetch_send_slot(fetch, slot, &err) != BH_OK)
            fetch_lose_process(fetch, BH_UNAVAILABLE, &err);
}

static bh_rc
fetch_receive_ready(struct bh_fetch *fetch, const struct bh_fetch_ready *ready, struct bh_err *err)
{
    if (ready->fault[0])
        return bh_err_set(err, BH_INVALID, "%s", ready->fault);
    fetch->ready = true;
    if (fetch->beginning == BEGINNING)
        fetch->beginning = BEGUN;
    bh_condition_broadcast(&fetch->changed);
    return BH_OK;
}

/* The caller waits, so its arena may be used. */
static bh_rc
fetch_receive_response(struct bh_fetch *fetch, const struct bh_fetch_response *answer, struct bh_err *err)
{
    struct fetch_slot *slot = fetch_find_call(fetch, answer->call);
    const char *body;

    if (!slot)
        return bh_err_set(err, BH_INVALID, "an answer without a request");
    fetch->answered = true;
    fetch->pause = 0;
    body = bh_arena_strdup(slot->arena, answer->body);
    fetch_finish(fetch, slot, answer->cause);
    if (!body)
        slot->rc = BH_FULL;
    if (!body || answer->status == 0)
        return BH_OK;
    slot->answer = (struct bh_https_response){
        .status = answer->status, .body = body, .length = strlen(body), .max_age_s = answer->max_age_s
    };
    return BH_OK;
}

static bh_rc
fetch_receive_frame(struct bh_fetch *fetch, const struct bh_frame *frame, struct bh_err *err)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(ARENA_MAX);
    const struct bh_fields *fields = bh_fetch_message_fields(frame->number);
    union {
        struct bh_fetch_ready ready;
        struct bh_fetch_response answer;
    } message;
    bh_rc rc;

    if (frame->number != BH_FETCH_MSG_READY && frame->number != BH_FETCH_MSG_RESPONSE)
        return bh_err_set(err, BH_INVALID, "message %u is not an answer", frame->number);
    rc = bh_frame_decode(frame, fields, &message, arena, err);
    if (rc != BH_OK)
        return rc;
    return frame->number == BH_FETCH_MSG_READY ? fetch_receive_ready(fetch, &message.ready, err)
                                               : fetch_receive_response(fetch, &message.answer, err);
}

static void
fetch_receive_frames(struct bh_fetch *fetch)
{
    struct bh_link *link = fetch->process.link;
    struct bh_frame frame;
    struct bh_err err;
    bh_rc rc = bh_link_flush(link, &err);

    if (rc == BH_OK)
        rc = bh_link_readable(link, &err);
    while (rc == BH_OK && (rc = bh_link_next(link, &frame, &err)) == BH_OK)
        rc = fetch_receive_frame(fetch, &frame, &err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        fetch_lose_process(fetch, rc == BH_INVALID ? rc : BH_UNAVAILABLE, &err);
}

/* ---- the thread ---- */

static int
fetch_ms_until_next(const struct bh_fetch *fetch)
{
    bh_ns next = fetch->process.pid && !fetch->ready ? fetch->ready_by : UINT64_MAX;
    bh_ns now = bh_time_monotonic();

    for (size_t i = 0; i < BH_COUNT(fetch->slots); i++)
        if (fetch->slots[i].state == SLOT_SENT && fetch->slots[i].deadline < next)
            next = fetch->slots[i].deadline;
    if (next == UINT64_MAX)
        return -1;
    return next <= now ? 0 : (int)((next - now) / BH_NS_PER_MS + 1);
}

/* Wait without the mutex until there is something to do. */
static void
fetch_await(struct bh_fetch *fetch)
{
    struct pollfd ready[2] = { { .fd = fetch->wake, .events = POLLIN }, { .fd = -1 } };
    int ms = fetch_ms_until_next(fetch);
    uint64_t wakes;

    if (fetch->process.pid) {
        ready[1].fd = bh_link_fd(fetch->process.link);
        ready[1].events = bh_link_interest(fetch->process.link);
    }
    bh_mutex_unlock(&fetch->mutex);
    poll(ready, BH_COUNT(ready), ms);
    bh_mutex_lock(&fetch->mutex);
    if (ready[0].revents)
        (void)!read(fetch->wake, &wakes, sizeof wakes); /* only its readiness counts */
    if (ready[1].revents)
        fetch_receive_frames(fetch);
}

static void *
fetch_run(void *self)
{
    struct bh_fetch *fetch = self;

    bh_mutex_lock(&fetch->mutex);
    fetch_begin(fetch);
    while (!fetch->stopping) {
        fetch_expire(fetch);
        fetch_ensure_process(fetch);
        fetch_send_queued(fetch);
        fetch_await(fetch);
    }
    bh_fetch_process_end(&fetch->process);
    fetch_finish_all(fetch, SLOT_SENT, BH_HTTPS_PROCESS);
    fetch_finish_all(fetch, SLOT_QUEUED, BH_HTTPS_PROCESS);
    bh_mutex_unlock(&fetch->mutex);
    return NULL;
}

static void
fetch_wake(struct bh_fetch *fetch)
{
    static const uint64_t one = 1;

    BH_ASSERT(write(fetch->wake, &one, sizeof one) == sizeof one);
}

/* ---- the port ---- */

static bool
fetch_is_within(const char *text, size_t max)
{
    return !text || strnlen(text, max + 1) <= max;
}

static bh_rc
fetch_check(const struct bh_https_request *request, struct bh_err *err)
{
    if (!request->url || !request->url[0] || !fetch_is_within(request->url, BH_HTTPS_URL_MAX)
        || !fetch_is_within(request->authorization, BH_HTTPS_HEADER_MAX)
        || !fetch_is_within(request->body, BH_HTTPS_BODY_MAX)
        || !fetch_is_within(request->certificate, BH_HTTPS_NAME_MAX))
        return bh_err_set(err, BH_INVALID, "a request without an address, or too long");
    for (const char *c = fetch_text_or_empty(request->authorization); *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            return bh_err_set(err, BH_INVALID, "a header with a control character");
    return BH_OK;
}

static void
fetch_await_answer(struct bh_fetch *fetch, struct fetch_slot *slot)
{
    BH_ASSERT(bh_mutex_is_held(&fetch->mutex));
    fetch_wake(fetch);
    while (slot->state != SLOT_DONE)
        bh_condition_wait(&fetch->changed, &fetch->mutex);
    slot->state = SLOT_FREE;
    bh_condition_broadcast(&fetch->changed);
}

static bh_rc
fetch_send_request(void *self, const struct bh_https_request *request, struct bh_arena *arena,
                   struct bh_https_response *ret_answer, struct bh_err *err)
{
    struct bh_fetch *fetch = self;
    bh_rc rc = fetch_check(request, err);
    struct fetch_slot *slot;

    if (rc != BH_OK)
        return rc;
    bh_mutex_lock(&fetch->mutex);
    slot = fetch_find_slot(fetch, SLOT_FREE);
    *ret_answer =
        (struct bh_https_response){ .body = "", .cause = fetch->stopping ? BH_HTTPS_PROCESS : BH_HTTPS_BUSY };
    if (slot && !fetch->stopping) {
        *slot = (struct fetch_slot){
            .state = SLOT_QUEUED, .call = ++fetch->calls, .request = request, .arena = arena
        };
        fetch_await_answer(fetch, slot);
        *ret_answer = slot->answer;
        rc = slot->rc;
    }
    bh_mutex_unlock(&fetch->mutex);
    return rc == BH_FULL ? bh_err_set(err, rc, "no room for an answer") : rc;
}

struct bh_https
bh_fetch_port(struct bh_fetch *fetch)
{
    static const struct bh_https_ops ops = { .ask = fetch_send_request };

    return (struct bh_https){ &ops, fetch };
}

/* ---- life ---- */

static struct bh_fetch *
fetch_make(const struct bh_fetch_options *options)
{
    struct bh_fetch *fetch = calloc(1, sizeof *fetch);
    uint64_t timeout_ms = options->timeout_ms ? options->timeout_ms : BH_HTTPS_SECONDS * 1000;

    BH_ASSERT(fetch);
    fetch->span = timeout_ms * BH_NS_PER_MS + BH_FETCH_GRACE;
    fetch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    BH_ASSERT(fetch->wake >= 0);
    bh_mutex_init(&fetch->mutex, BH_LOCK_FETCH);
    bh_condition_init(&fetch->changed);
    return fetch;
}

/* The thread takes no signals: they are for the program's others. */
static void
fetch_start_thread(struct bh_fetch *fetch)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    BH_ASSERT(pthread_create(&fetch->thread, NULL, fetch_run, fetch) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bh_rc
bh_fetch_start(const struct bh_fetch_options *options, struct bh_fetch **ret_fetch, struct bh_err *err)
{
    struct bh_fetch_command command;
    struct bh_fetch *fetch;
    bh_rc rc = bh_fetch_command_make(options, &command, err);

    if (rc != BH_OK)
        return rc;
    fetch = fetch_make(options);
    fetch->command = command;
    fetch_start_thread(fetch);
    bh_mutex_lock(&fetch->mutex);
    while (fetch->beginning == BEGINNING)
        bh_condition_wait(&fetch->changed, &fetch->mutex);
    if (fetch->beginning == FAILED) {
        *err = fetch->fault;
        rc = bh_err_wrap(err, "start %s", options->program);
    }
    bh_mutex_unlock(&fetch->mutex);
    if (rc == BH_OK)
        *ret_fetch = fetch;
    else
        bh_fetch_stop(fetch);
    return rc;
}

void
bh_fetch_stop(struct bh_fetch *fetch)
{
    if (!fetch)
        return;
    bh_mutex_lock(&fetch->mutex);
    fetch->stopping = true;
    fetch_wake(fetch);
    bh_mutex_unlock(&fetch->mutex);
    pthread_join(fetch->thread, NULL);
    bh_mutex_lock(&fetch->mutex);
    while (fetch_find_slot(fetch, SLOT_DONE))
        bh_condition_wait(&fetch->changed, &fetch->mutex);
    bh_mutex_unlock(&fetch->mutex);
    bh_condition_fini(&fetch->changed);
    bh_mutex_fini(&fetch->mutex);
    bh_fd_close(fetch->wake);
    bh_fetch_command_free(&fetch->command);
    free(fetch);
}

pid_t
bh_fetch_process(struct bh_fetch *fetch)
{
    pid_t pid;

    bh_mutex_lock(&fetch->mutex);
    pid = fetch->process.pid;
    bh_mutex_unlock(&fetch->mutex);
    return pid;
}

const char *
bh_https_cause_text(enum bh_https_cause cause)
{
    static const char *const texts[] = {
#define BH_HTTPS_CAUSE(id, text) [BH_HTTPS_##id] = text,
#include "tables/https_causes.tbl"
#undef BH_HTTPS_CAUSE
    };

    return (size_t)cause < BH_COUNT(texts) ? texts[cause] : "unknown cause";
}
