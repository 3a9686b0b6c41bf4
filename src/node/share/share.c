#include "node/share/share.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/common/helper.h"
#include "node/share/share_counts.h"
#include "wire/frame_io.h"

#define ANSWER_WITHIN (2 * BH_NS_PER_S)
#define RESTART_DELAY BH_NS_PER_S
enum { ARENA_BYTES = 1 << 18 };

struct open_lease {
    struct bh_share_open open;
    struct bh_share_lease_state state;
    bool notified; /* `state` is known */
    struct bh_share_counts counts;
};

struct bh_share_host {
    struct bh_share_host_options options;
    char *program;
    pid_t pid; /* 0: none runs */
    struct bh_link *link;
    bh_ns started_at;                /* monotonic */
    struct bh_share_outcome outcome; /* the last one */
    bool answered;
    struct open_lease leases[BH_SHARE_LEASES_MAX];
    uint32_t count;
};

struct bh_share_host *
bh_share_host_new(const struct bh_share_host_options *options)
{
    struct bh_share_host *host = calloc(1, sizeof(*host));

    BH_ASSERT(host != NULL);
    host->options = *options;
    host->program = strdup(options->program);
    BH_ASSERT(host->program != NULL);
    return host;
}

/* Kill it, if it lives; what it said of the leases is old then. */
static void
share_host_end(struct bh_share_host *host)
{
    if (host->pid == 0)
        return;
    bh_link_free(bh_steal(&host->link));
    kill(host->pid, SIGKILL);
    waitpid(host->pid, NULL, 0);
    host->pid = 0;
    for (uint32_t i = 0; i < host->count; i++)
        host->leases[i].notified = false;
}

void
bh_share_host_free(struct bh_share_host *host)
{
    if (host == NULL)
        return;
    share_host_end(host);
    free(host->program);
    free(host);
}

static void
share_host_assert(const struct bh_share_host *host)
{
    BH_ASSERT(host->count <= BH_COUNT(host->leases) && host->program && host->options.notice);
    BH_ASSERT(host->pid >= 0 && (host->pid > 0) == (host->link != NULL));
}

static struct open_lease *
share_host_find(struct bh_share_host *host, uint64_t lease)
{
    share_host_assert(host);
    for (uint32_t i = 0; i < host->count; i++)
        if (host->leases[i].open.lease == lease)
            return &host->leases[i];
    return NULL;
}

/* ---- what it says ---- */

static void
share_compare_counts(struct bh_share_host *host, struct open_lease *lease)
{
    const struct bh_share_lease_state *state = &lease->state;
    const struct bh_share_notice notice = { .lease = state->lease, .kind = BH_SHARE_NOTICE_UNCOUNTED };
    uint32_t found = bh_share_counts_check(&lease->counts, state);

    for (uint32_t d = 0; d < BH_SHARE_DEVICES_MAX; d++) {
        if ((found & UINT32_C(1) << d) == 0)
            continue;
        bh_log(SHARE_COUNTS, BH_U64("lease", state->lease), BH_U64("device", d),
               BH_U64("charged_mib", state->used_bytes[d] >> 20), BH_U64("library_mib", state->seen_mib[d]),
               BH_U64("driver_mib", state->driver_mib[d]));
        if (bh_share_counts_must_notify(state, d))
            host->options.notice(host->options.self, &notice);
    }
}

static void
share_receive_state(struct bh_share_host *host, const struct bh_share_state *state)
{
    const struct bh_share_lease_state *items = state->leases.items;

    for (uint32_t i = 0; i < state->leases.count; i++) {
        struct open_lease *lease = share_host_find(host, items[i].lease);

        if (lease == NULL)
            continue;
        lease->state = items[i];
        lease->notified = true;
        share_compare_counts(host, lease);
    }
}

static bh_rc
share_host_receive(struct bh_share_host *host, const struct bh_frame *frame, struct bh_err *err)
{
    union {
        struct bh_share_outcome outcome;
        struct bh_share_state state;
        struct bh_share_notice notice;
    } said = { 0 };
    const struct bh_fields *fields = bh_share_message_fields(frame->number);
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA_BYTES);
    bh_rc rc;

    if (fields == NULL || frame->number < BH_SHARE_MSG_OUTCOME)
        return bh_err_set(err, BH_INVALID, "bulkhead-share sent an unknown message: %u", frame->number);
    rc = bh_frame_decode(frame, fields, &said, arena, err);
    if (rc != BH_OK)
        return rc;
    if (frame->number == BH_SHARE_MSG_STATE) {
        share_receive_state(host, &said.state);
    } else if (frame->number == BH_SHARE_MSG_NOTICE) {
        host->options.notice(host->options.self, &said.notice);
    } else {
        host->outcome = said.outcome;
        host->answered = true;
    }
    return BH_OK;
}

static bh_rc
share_listen_to(struct bh_share_host *host, struct bh_err *err)
{
    bh_rc rc = bh_link_readable(host->link, err);
    struct bh_frame frame;

    while (rc == BH_OK && (rc = bh_link_next(host->link, &frame, err)) == BH_OK)
        rc = share_host_receive(host, &frame, err);
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* ---- asking ---- */

static bh_rc
share_host_ask(struct bh_share_host *host, uint32_t number, const void *message, struct bh_err *err)
{
    bh_ns until = bh_time_monotonic() + ANSWER_WITHIN, now;
    bh_rc rc;

    BH_ASSERT(host->pid > 0 && host->link);
    host->answered = false;
    rc = bh_link_send(host->link, number, bh_share_message_fields(number), message, err);
    while (rc == BH_OK && !host->answered && (now = bh_time_monotonic()) < until) {
        struct pollfd ready = { .fd = bh_link_fd(host->link), .events = bh_link_interest(host->link) };

        poll(&ready, 1, (int)((until - now) / BH_NS_PER_MS) + 1);
        rc = bh_link_flush(host->link, err);
        if (rc == BH_OK && ready.revents != 0)
            rc = share_listen_to(host, err);
    }
    if (rc == BH_OK && !host->answered)
        rc = bh_err_set(err, BH_TIMEOUT, "bulkhead-share does not answer");
    if (rc != BH_OK) {
        share_host_end(host); /* the next request starts it again, with all leases */
        return rc;
    }
    if (host->outcome.rc == BH_OK)
        return BH_OK;
    return bh_err_set(err, (bh_rc)host->outcome.rc, "%s", host->outcome.msg);
}

static bh_rc
share_host_start(struct bh_share_host *host, struct bh_err *err)
{
    struct bh_helper helper = { 0 };
    int pair[2];
    bh_rc rc;

    BH_ASSERT(host->pid == 0 && !host->link);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return bh_err_errno(err, "bulkhead-share");
    bh_helper_word(&helper, "%s", host->program);
    rc = bh_helper_start(&helper, STDERR_FILENO, pair[1], &host->pid, err);
    close(pair[1]);
    host->started_at = bh_time_monotonic();
    if (rc != BH_OK) {
        close(pair[0]);
        host->pid = 0;
        return rc;
    }
    host->link = bh_link_new(pair[0]);
    return BH_OK;
}

/* Running, and knowing all leases that are open. */
static bh_rc
share_get_ready(struct bh_share_host *host, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    if (host->pid != 0)
        return BH_OK;
    rc = share_host_start(host, err);
    for (uint32_t i = 0; rc == BH_OK && host->pid != 0 && i < host->count; i++)
        rc = share_host_ask(host, BH_SHARE_MSG_OPEN, &host->leases[i].open, err);
    return rc;
}

bh_rc
bh_share_host_open(struct bh_share_host *host, const struct bh_share_open *open, struct bh_err *err)
{
    bh_rc rc = share_get_ready(host, err);

    if (rc != BH_OK)
        return rc;
    if (share_host_find(host, open->lease) == NULL && host->count == BH_SHARE_LEASES_MAX)
        return bh_err_set(err, BH_FULL, "%d leases share GPUs on this node", BH_SHARE_LEASES_MAX);
    rc = share_host_ask(host, BH_SHARE_MSG_OPEN, open, err);
    if (rc != BH_OK)
        return rc;
    if (share_host_find(host, open->lease) == NULL)
        host->leases[host->count++] = (struct open_lease){ .open = *open };
    return BH_OK;
}

void
bh_share_host_close(struct bh_share_host *host, uint64_t lease)
{
    struct bh_share_close close_it = { .lease = lease };
    struct open_lease *open = share_host_find(host, lease);
    struct bh_err err = { 0 };

    if (open == NULL)
        return;
    *open = host->leases[--host->count];
    /* One that does not answer is ended, and the next does not hear of this lease. */
    if (host->pid != 0)
        (void)!share_host_ask(host, BH_SHARE_MSG_CLOSE, &close_it, &err);
}

/* What has no answer. */
static void
share_host_send(struct bh_share_host *host, uint32_t number, const void *message)
{
    struct bh_err err = { 0 };

    if (host->pid != 0
        && bh_link_send(host->link, number, bh_share_message_fields(number), message, &err) != BH_OK)
        share_host_end(host);
}

void
bh_share_host_overhead(struct bh_share_host *host, const struct bh_share_overhead *overhead)
{
    share_host_send(host, BH_SHARE_MSG_OVERHEAD, overhead);
}

void
bh_share_host_holder(struct bh_share_host *host, const struct bh_share_holder *holder)
{
    share_host_send(host, BH_SHARE_MSG_HOLDER, holder);
}

void
bh_share_host_allow(struct bh_share_host *host, const struct bh_share_allow *allow)
{
    struct open_lease *lease = share_host_find(host, allow->lease);

    if (lease == NULL)
        return;
    lease->open.paused = allow->paused;
    lease->open.throttled = allow->throttled;
    share_host_send(host, BH_SHARE_MSG_ALLOW, allow);
}

int
bh_share_host_fd(const struct bh_share_host *host)
{
    share_host_assert(host);
    return host->pid != 0 ? bh_link_fd(host->link) : -1;
}

void
bh_share_host_dispatch(struct bh_share_host *host)
{
    struct bh_err err = { 0 };

    share_host_assert(host);
    if (host->pid != 0 && share_listen_to(host, &err) != BH_OK)
        share_host_end(host);
    if (host->pid == 0 && host->count > 0 && bh_time_monotonic() >= host->started_at + RESTART_DELAY
        && share_get_ready(host, &err) != BH_OK)
        share_host_end(host);
}

const struct bh_share_lease_state *
bh_share_host_find(const struct bh_share_host *host, uint64_t lease)
{
    for (uint32_t i = 0; i < host->count; i++)
        if (host->leases[i].open.lease == lease)
            return host->leases[i].notified ? &host->leases[i].state : NULL;
    return NULL;
}
