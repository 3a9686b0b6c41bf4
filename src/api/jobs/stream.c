#include "api/jobs/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/documents/replies.h"
#include "api/jobs/jobs.h"
#include "api/jobs/log_file.h"
#include "api/request/auth.h"
#include "api/request/followers.h"
#include "api/request/stream_gate.h"
#include "api/request/visible.h"
#include "base/assert.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/time.h"
#include "base/utf8.h"

enum { CHUNK_BYTES = 32 << 10, CHANGES_MAX = 64, EVENTS_BYTES_MAX = 1 << 20 };

#define SILENCE_DEFAULT_NS (2 * BH_NS_PER_S)
#define POLL_FIRST_NS (20 * BH_NS_PER_MS)
#define POLL_LAST_NS (200 * BH_NS_PER_MS)
#define RECHECK_NS BH_NS_PER_S

/* A stream of events: what was made and not yet taken is in `out`. */
struct events {
    struct bh_call call;    /* copied: the request lives until the stream closes */
    bh_principal_id holder; /* whose it counts as */
    struct bh_buf out;
    struct bh_arena *scratch; /* for one call of next */
    bool (*next)(
        struct events *events); /* makes events, none: nothing is to be said; false: the stream is over */
    bool follows;               /* what comes later is sent, too */
    bool over;
    bh_ns again;     /* with none: when to ask again, if no change comes before */
    bh_ns silent_ns; /* until when the stream may say nothing */
    struct bh_follower follower;
    uint64_t change;    /* number of the last change seen */
    uint64_t job;       /* logs: whose; watch: only this one, 0 all */
    const char *tenant; /* watch: only this one and below, NULL all */
    /* logs */
    int fd;
    const char *path;
    uint64_t offset;
    bh_ns pause_ns, checked_ns;
    bool ended;
    bool gone; /* the job began, has ended, and its log is not there */
};

static void
stream_begin_events(void *self, const struct bh_waker *waker)
{
    struct events *events = self;

    if (events->follows)
        bh_followers_join(events->call.api->followers, &events->follower, waker);
}

/* A stream that is idle holds no memory for events. */
static void
stream_make_events(struct events *events)
{
    events->call.arena = events->scratch = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    events->over = !events->next(events);
    bh_arena_free(events->scratch);
    events->call.arena = events->scratch = NULL;
}

static long
stream_read_events(void *self, char *memory, size_t size, bh_ns *ret_again)
{
    struct events *events = self;
    size_t count;

    if (events->out.length == 0 && !events->over)
        stream_make_events(events);
    *ret_again = events->again;
    if (events->out.length == 0)
        return events->over ? BH_STREAM_OVER : 0;
    count = events->out.length < size ? events->out.length : size;
    memcpy(memory, events->out.bytes, count);
    bh_buf_drop(&events->out, count);
    if (events->out.length == 0) {
        bh_buf_fini(&events->out);
        bh_buf_init(&events->out, EVENTS_BYTES_MAX);
    }
    return (long)count;
}

static void
stream_close_events(void *self)
{
    struct events *events = self;

    bh_followers_leave(events->call.api->followers, &events->follower);
    bh_stream_gate_leave(events->call.api->streams, events->holder);
    bh_fd_close(events->fd);
    bh_buf_fini(&events->out);
    free(events);
}

/* Results of bh_stream_gate_enter. */
static bh_rc
stream_events_open(struct bh_call *call, bool (*next)(struct events *), struct events **ret_events,
                   struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    struct events *events;
    bh_rc rc = bh_stream_gate_enter(call, err);

    if (rc != BH_OK)
        return rc;
    events = calloc(1, sizeof *events);
    BH_ASSERT(events);
    events->holder = call->caller.subject.principal;
    events->change = owner->ops->change_number(owner->self);
    events->call = *call;
    events->call.dir = NULL;
    events->fd = -1;
    events->next = next;
    bh_buf_init(&events->out, EVENTS_BYTES_MAX);
    *ret_events = events;
    return BH_OK;
}

static void
stream_send_events(struct bh_call *call, struct events *events)
{
    call->reply->content_type = "text/event-stream";
    call->reply->stream =
        (struct bh_stream){ stream_begin_events, stream_read_events, stream_close_events, events };
}

/* Identify the caller and check its rights: the site file and tokens change while a stream is open.  The
 * directory is held until `leave`. */
static bool
stream_enter(struct events *events)
{
    const struct bh_owner *owner = &events->call.api->options.owner;
    struct bh_err unused;

    events->call.dir = owner->ops->directory_get(owner->self);
    return bh_auth_identify(&events->call, &unused) == BH_OK;
}

static void
stream_leave(struct events *events)
{
    const struct bh_owner *owner = &events->call.api->options.owner;

    owner->ops->directory_put(owner->self, events->call.dir);
    events->call.dir = NULL;
}

/* How long a stream may say nothing before it shows that it lives. */
static uint64_t
stream_silence_ns(const struct events *events)
{
    uint64_t given = events->call.api->options.silence_ns;

    return given ? given : SILENCE_DEFAULT_NS;
}

static void
stream_put_denied(struct events *events)
{
    bh_buf_puts(&events->out, "event: denied\ndata: {}\n\n");
}

static void
stream_allow_silence(struct events *events)
{
    events->silent_ns = bh_time_monotonic() + stream_silence_ns(events);
}

static uint32_t
stream_take_changes(struct events *events, struct bh_change *changes)
{
    const struct bh_owner *owner = &events->call.api->options.owner;
    uint32_t count = owner->ops->changes(owner->self, events->change, 0, changes, CHANGES_MAX);

    if (count > 0)
        events->change = changes[count - 1].number;
    return count;
}

/* ---- watch ---- */

static void
stream_put_change(struct events *events, const struct bh_change *change)
{
    const struct bh_dir_tenant *tenant =
        bh_directory_tenant(events->call.dir, (bh_tenant_id){ change->tenant_id });
    const struct bh_reply_change_event event = { .at_ns = change->at_ns,
                                                 .job = change->job,
                                                 .number = change->number,
                                                 .reason = change->reason,
                                                 .state = change->state,
                                                 .tenant = tenant ? tenant->path : "" };

    bh_buf_printf(&events->out, "event: change\nid: %" PRIu64 "\ndata: ", change->number);
    bh_json_encode(&events->out, &bh_reply_change_event_fields, &event);
    bh_buf_puts(&events->out, "\n\n");
}

static bool
stream_find_watched(struct events *events, struct bh_visible *ret_visible)
{
    struct bh_err unused;

    if (bh_visible_find(&events->call, "job.view", ret_visible, &unused) != BH_OK)
        return false;
    if (!ret_visible->all && ret_visible->count == 0)
        return false;
    return !events->tenant || bh_visible_narrow(&events->call, events->tenant, ret_visible, &unused) == BH_OK;
}

static bool
stream_put_changes(struct events *events, const struct bh_change *changes, uint32_t count)
{
    struct bh_visible visible;
    bool allowed = stream_enter(events) && stream_find_watched(events, &visible);

    for (uint32_t i = 0; i < count && allowed; i++)
        if ((events->job == 0 || events->job == changes[i].job)
            && bh_visible_has(&visible, changes[i].tenant_id))
            stream_put_change(events, &changes[i]);
    if (!allowed)
        stream_put_denied(events);
    stream_leave(events);
    return allowed;
}

static bool
stream_break_silence(struct events *events)
{
    bool allowed = stream_put_changes(events, NULL, 0);

    if (allowed)
        bh_buf_puts(&events->out, ":\n\n");
    return allowed;
}

/* Of many changes the stream may show none. */
static bool
stream_next_change(struct events *events)
{
    struct bh_change *changes = bh_arena_alloc(events->scratch, CHANGES_MAX * sizeof *changes);
    bool more = true;
    uint32_t count;

    BH_ASSERT(changes);
    while (more && events->out.length == 0 && (count = stream_take_changes(events, changes)) > 0)
        more = stream_put_changes(events, changes, count);
    if (more && events->out.length == 0 && bh_time_monotonic() >= events->silent_ns)
        more = stream_break_silence(events);
    if (events->out.length > 0)
        stream_allow_silence(events);
    events->again = events->silent_ns;
    return more && !events->out.overflow;
}

bh_rc
bh_stream_watch(struct bh_call *call, struct bh_err *err)
{
    const char *tenant = call->query.tenant;
    uint64_t job = call->query.job;
    struct bh_visible visible;
    struct events *events;
    bh_rc rc = bh_visible_read(call, "job.view", &visible, err);

    if (rc != BH_OK)
        return rc;
    rc = stream_events_open(call, stream_next_change, &events, err);
    if (rc != BH_OK)
        return rc;
    events->follows = true;
    events->job = job;
    events->tenant = tenant ? bh_arena_strdup(call->arena, tenant) : NULL;
    bh_buf_puts(&events->out, ": watching\n\n");
    stream_allow_silence(events);
    stream_send_events(call, events);
    return BH_OK;
}

/* ---- logs ---- */

/* How many of `length` bytes are whole UTF-8 characters; the rest of a character that
 * the chunk cut waits for the next one. */
static size_t
stream_whole_characters(const char *bytes, size_t length)
{
    size_t at = 0;

    while (at < length) {
        size_t step = bytes[at] ? bh_utf8_step(bytes + at, length - at) : 0;

        if (step == 0)
            break;
        at += step;
    }
    return at;
}

/* One "log" event; returns how many bytes it says.  0: only part of a character is
 * there, and more may come. */
static size_t
stream_put_chunk(struct events *events, const char *bytes, size_t length)
{
    size_t whole = stream_whole_characters(bytes, length);
    bool cut = length - whole < 4 && !events->ended;
    struct bh_reply_log_event event = { .offset = events->offset };
    struct bh_buf base64;

    if (whole == 0 && cut)
        return 0;
    bh_buf_init(&base64, 2 * CHUNK_BYTES);
    if (whole > 0) {
        event.text = (struct bh_slice){ bytes, whole };
    } else {
        bh_base64_encode(&base64, bytes, length);
        event.base64 = (struct bh_slice){ base64.bytes, base64.length };
    }
    bh_buf_printf(&events->out,
                  "event: log\nid: %" PRIu64 "\ndata: ", events->offset + (whole ? whole : length));
    bh_json_encode(&events->out, &bh_reply_log_event_fields, &event);
    bh_buf_fini(&base64);
    bh_buf_puts(&events->out, "\n\n");
    return whole ? whole : length;
}

/* The file appears when the job starts. */
static bool
stream_open_log(struct events *events)
{
    if (events->fd < 0)
        events->fd = open(events->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return events->fd >= 0;
}

/* Says what the file has beyond the offset; false when that is nothing. */
static bool
stream_put_log(struct events *events)
{
    char *chunk = bh_arena_alloc(events->scratch, CHUNK_BYTES);
    ssize_t got;
    size_t said;

    BH_ASSERT(chunk);
    if (!stream_open_log(events))
        return false;
    got = pread(events->fd, chunk, CHUNK_BYTES, (off_t)events->offset);
    if (got <= 0)
        return false;
    said = stream_put_chunk(events, chunk, (size_t)got);
    events->offset += said;
    return said > 0;
}

static void
stream_put_end(struct events *events)
{
    struct bh_reply_end_event event;
    struct bh_job_row row;

    if (!bh_jobs_read(&events->call, events->job, events->scratch, &row))
        row = (struct bh_job_row){ .state = "failed", .reason = "none", .exit_status = -1 };
    event = (struct bh_reply_end_event){ .cause = row.reason,
                                         .exit_status = row.exit_status >= 0 ? row.exit_status : BH_UNSET,
                                         .state = row.state };
    bh_buf_puts(&events->out, "event: end\ndata: ");
    bh_json_encode(&events->out, &bh_reply_end_event_fields, &event);
    bh_buf_puts(&events->out, "\n\n");
}

/* Whether the job has ended, and whether its reader still may read; asked when a
 * change of the job was seen, and every second. */
static bool
stream_recheck(struct events *events)
{
    struct bh_job_row row;
    bool allowed = stream_enter(events);

    if (bh_jobs_read(&events->call, events->job, events->scratch, &row)) {
        allowed = allowed
                  && bh_authz_check(events->call.dir, &events->call.caller.subject, "job.logs",
                                    (bh_tenant_id){ row.tenant_id })
                         .allow;
        events->ended = bh_jobs_ended(row.state);
    }
    stream_leave(events);
    events->checked_ns = bh_time_monotonic();
    return allowed;
}

/* Whether the job is to be looked at: it has changed, or that was long ago. */
static bool
stream_is_stale(struct events *events)
{
    struct bh_change *changes = bh_arena_alloc(events->scratch, CHANGES_MAX * sizeof *changes);
    bool changed = false;
    uint32_t count;

    BH_ASSERT(changes);
    while ((count = stream_take_changes(events, changes)) > 0)
        for (uint32_t i = 0; i < count; i++)
            changed = changed || changes[i].job == events->job;
    return changed || bh_time_monotonic() - events->checked_ns >= RECHECK_NS;
}

/* The log of a job that says nothing is looked at less and less often. */
static void
stream_pause_log(struct events *events)
{
    bh_ns now = bh_time_monotonic();

    if (now >= events->again) {
        events->again = now + events->pause_ns;
        events->pause_ns = events->pause_ns * 2 < POLL_LAST_NS ? events->pause_ns * 2 : POLL_LAST_NS;
    }
}

static bool
stream_next_log(struct events *events)
{
    if (!events->ended && stream_is_stale(events) && !stream_recheck(events)) {
        stream_put_denied(events);
        return false;
    }
    if (stream_put_log(events)) {
        events->pause_ns = POLL_FIRST_NS;
        events->again = 0;
        stream_allow_silence(events);
        return !events->out.overflow;
    }
    if (events->ended) {
        if (events->gone)
            (void)stream_put_chunk(events, bh_log_file_gone_words, strlen(bh_log_file_gone_words));
        stream_put_end(events);
        return false;
    }
    if (bh_time_monotonic() >= events->silent_ns) {
        bh_buf_puts(&events->out, ":\n\n");
        stream_allow_silence(events);
        return true;
    }
    stream_pause_log(events);
    return true;
}

static bool
stream_next_whole(struct events *events)
{
    bh_buf_clear(&events->out);
    if (!stream_open_log(events)) {
        if (events->gone)
            bh_buf_puts(&events->out, bh_log_file_gone_words);
        return false;
    }
    for (;;) {
        char *chunk = bh_arena_alloc(events->scratch, CHUNK_BYTES);
        ssize_t got;

        BH_ASSERT(chunk);
        got = pread(events->fd, chunk, CHUNK_BYTES, (off_t)events->offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        bh_buf_put(&events->out, chunk, (size_t)got);
        events->offset += (uint64_t)got;
        return true;
    }
}

bh_rc
bh_stream_logs(struct bh_call *call, struct bh_err *err)
{
    bool follow = call->query.follow;
    struct bh_job_row row;
    struct events *events;
    const char *path;
    bh_rc rc = bh_log_file_find(call, &row, &path, err);

    if (rc != BH_OK)
        return rc;
    rc = stream_events_open(call, follow ? stream_next_log : stream_next_whole, &events, err);
    if (rc != BH_OK)
        return rc;
    events->follows = follow;
    events->job = row.job;
    events->path = path;
    events->offset = call->query.offset;
    events->gone = events->offset == 0 && bh_log_file_is_gone(&row, path);
    events->pause_ns = POLL_FIRST_NS;
    stream_allow_silence(events);
    stream_send_events(call, events);
    if (!follow)
        call->reply->content_type = "text/plain; charset=utf-8";
    return BH_OK;
}
