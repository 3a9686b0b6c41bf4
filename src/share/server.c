#include "share/server.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/time.h"
#include "share/lease.h"
#include "wire/frame_io.h"

enum { ROUNDS_MAX = 8, ARENA_BYTES = 1 << 18 };
#define STATE_EVERY_NS BH_NS_PER_S

struct server {
    struct bh_link *link;
    struct bh_share_site site;
    struct bh_share_lease *leases[BH_TIME_SLICES_MEMBERS_MAX];
    uint32_t count;
    uint64_t state_ns; /* when it is sent next */
    struct bh_err lost;
    bh_rc rc;
};

/* ---- to the node ---- */

static void
share_server_send(struct server *server, uint32_t number, const void *message)
{
    bh_rc rc = bh_link_send(server->link, number, bh_share_message_fields(number), message, &server->lost);

    if (rc != BH_OK && server->rc == BH_OK)
        server->rc = rc;
}

static void
server_notice(void *self, uint64_t lease, enum bh_share_notice_kind kind, uint32_t pid)
{
    struct bh_share_notice notified = { .lease = lease, .kind = kind, .pid = pid };

    share_server_send(self, BH_SHARE_MSG_NOTICE, &notified);
}

static void
server_send_state(struct server *server)
{
    static struct bh_share_lease_state states[BH_TIME_SLICES_MEMBERS_MAX];
    struct bh_share_state state = { .leases = { .items = states, .count = server->count } };

    for (uint32_t i = 0; i < server->count; i++)
        states[i] = bh_share_lease_state(server->leases[i]);
    share_server_send(server, BH_SHARE_MSG_STATE, &state);
}

/* ---- from the node ---- */

static struct bh_share_lease **
share_server_find(struct server *server, uint64_t lease)
{
    for (uint32_t i = 0; i < server->count; i++)
        if (bh_share_lease_id(server->leases[i]) == lease)
            return &server->leases[i];
    return NULL;
}

static void
server_open_lease(struct server *server, const struct bh_share_open *open, uint64_t now_ns)
{
    struct bh_share_outcome outcome = { .lease = open->lease };
    struct bh_err err = { 0 };
    bh_rc rc = BH_OK;

    if (share_server_find(server, open->lease) == NULL) {
        if (server->count == BH_TIME_SLICES_MEMBERS_MAX)
            rc = bh_err_set(&err, BH_FULL, "%d leases share GPUs on this node", BH_TIME_SLICES_MEMBERS_MAX);
        else
            rc = bh_share_lease_open(&server->site, open, now_ns, &server->leases[server->count], &err);
        server->count += rc == BH_OK;
    }
    outcome.rc = rc;
    memcpy(outcome.msg, err.msg, sizeof(outcome.msg));
    share_server_send(server, BH_SHARE_MSG_OUTCOME, &outcome);
}

static void
server_close_lease(struct server *server, uint64_t lease, uint64_t now_ns)
{
    struct bh_share_outcome outcome = { .lease = lease, .rc = BH_OK };
    struct bh_share_lease **at = share_server_find(server, lease);

    if (at != NULL) {
        bh_share_lease_close(*at, now_ns);
        *at = server->leases[--server->count];
    }
    share_server_send(server, BH_SHARE_MSG_OUTCOME, &outcome);
}

_Static_assert(offsetof(struct bh_share_allow, lease) == 0 && offsetof(struct bh_share_holder, lease) == 0
                   && offsetof(struct bh_share_overhead, lease) == 0,
               "what is sent of a lease names it first");

static bh_rc
share_server_receive(struct server *server, const struct bh_frame *frame, uint64_t now_ns)
{
    static union {
        struct bh_share_open open;
        struct bh_share_close close;
        struct bh_share_overhead overhead;
        struct bh_share_allow allow;
        struct bh_share_holder holder;
    } asked;
    const struct bh_fields *fields = bh_share_message_fields(frame->number);
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA_BYTES);
    struct bh_share_lease **at;
    bh_rc rc;

    if (fields == NULL || frame->number >= BH_SHARE_MSG_OUTCOME)
        return bh_err_set(&server->lost, BH_INVALID, "no message: %u", frame->number);
    memset(&asked, 0, sizeof(asked));
    rc = bh_frame_decode(frame, fields, &asked, arena, &server->lost);
    if (rc != BH_OK)
        return rc;
    if (frame->number == BH_SHARE_MSG_OPEN)
        server_open_lease(server, &asked.open, now_ns);
    else if (frame->number == BH_SHARE_MSG_CLOSE)
        server_close_lease(server, asked.close.lease, now_ns);
    else if ((at = share_server_find(server, asked.holder.lease)) == NULL)
        return BH_OK; /* it was closed meanwhile */
    else if (frame->number == BH_SHARE_MSG_ALLOW)
        bh_share_lease_allow(*at, now_ns, &asked.allow);
    else if (frame->number == BH_SHARE_MSG_HOLDER)
        bh_share_lease_holder(*at, now_ns, asked.holder.pid);
    else
        bh_share_lease_overhead(*at, asked.overhead.device, asked.overhead.bytes);
    return BH_OK;
}

static void
server_control_ready(void *of, uint64_t now_ns)
{
    struct server *server = of;
    struct bh_frame frame;
    bh_rc rc = bh_link_readable(server->link, &server->lost);

    while (rc == BH_OK && (rc = bh_link_next(server->link, &frame, &server->lost)) == BH_OK)
        rc = share_server_receive(server, &frame, now_ns);
    if (rc != BH_OK && rc != BH_NOT_FOUND && server->rc == BH_OK)
        server->rc = rc;
}

/* ---- the loop ---- */

/* A time slice that ends may begin another; each lease is asked until all agree. */
static void
share_server_follow(struct server *server, uint64_t now_ns)
{
    bool changed = true;

    for (int round = 0; changed && round < ROUNDS_MAX; round++) {
        changed = false;
        for (uint32_t i = 0; i < server->count; i++)
            changed |= bh_share_lease_follow(server->leases[i], now_ns);
    }
}

static struct timespec
server_until_next(const struct server *server, uint64_t now_ns)
{
    uint64_t next = bh_time_slices_next(server->site.slices), wait;

    if (next > server->state_ns)
        next = server->state_ns;
    wait = next > now_ns ? next - now_ns : 0;
    return (struct timespec){ (time_t)(wait / BH_NS_PER_S), (long)(wait % BH_NS_PER_S) };
}

/* The time of its GPUs that each used in the last second. */
static void
share_server_measure(struct server *server, uint64_t now_ns)
{
    static struct bh_share_measured measured[BH_TIME_SLICES_MEMBERS_MAX];

    for (uint32_t i = 0; i < server->count; i++)
        measured[i] = bh_share_lease_measure(server->leases[i], now_ns);
    for (uint32_t i = 0; i < server->count; i++) {
        bool others = false;

        for (uint32_t k = 0; k < server->count; k++)
            others = others
                     || (k != i && (measured[k].gpus & measured[i].gpus) != 0 && measured[k].granted_ns > 0);
        bh_share_lease_publish(server->leases[i], now_ns, &measured[i], others);
    }
}

/* One descriptor at a time: what is done about it may free what the next one is of. */
static void
share_server_step(struct server *server)
{
    struct timespec wait = server_until_next(server, bh_time_monotonic());
    struct epoll_event event;
    int count = epoll_pwait2(server->site.epoll_fd, &event, 1, &wait, NULL);
    uint64_t now_ns = bh_time_monotonic();

    if (count == 1) {
        const struct bh_share_watch *watch = event.data.ptr;

        watch->ready(watch->of, now_ns);
    }
    bh_time_slices_tick(server->site.slices, now_ns);
    share_server_follow(server, now_ns);
    if (now_ns >= server->state_ns) {
        server->state_ns = now_ns + STATE_EVERY_NS;
        share_server_measure(server, now_ns);
        server_send_state(server);
    }
}

bh_rc
bh_share_serve(int control, const struct bh_time_slices_options *options, struct bh_err *err)
{
    BH_AUTO(bh_time_slices_free) struct bh_time_slices *slices = bh_time_slices_new(options);
    BH_AUTO(bh_link_free) struct bh_link *link = bh_link_new(control);
    BH_AUTO(bh_fd_close) int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    static struct server server;
    struct bh_share_watch watch = { server_control_ready, &server };
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &watch };

    server = (struct server){ .link = link, .rc = BH_OK };
    server.site = (struct bh_share_site){ epoll_fd, slices, server_notice, &server };
    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, bh_link_fd(link), &event) != 0)
        return bh_err_errno(err, "epoll");
    while (server.rc == BH_OK)
        share_server_step(&server);
    *err = server.lost;
    return server.rc;
}
