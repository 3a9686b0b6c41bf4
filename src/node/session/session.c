#include "node/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/core/host.h"
#include "node/core/state_check.h"
#include "node/job/job.h"
#include "node/job/order_answer.h"
#include "node/job/scrub.h"
#include "node/job/unpack.h"
#include "node/orders/order_watermark.h"
#include "node/partition/health.h"
#include "node/partition/partition.h"
#include "node/placement/inventory.h"
#include "node/session/epoch.h"
#include "node/session/report.h"
#include "node/verify/verify.h"

enum { MESSAGE_BYTES_MAX = 16 << 20 };
#define REFUSED_LOG_INTERVAL (60 * BH_NS_PER_S)

/* ---- connecting ---- */

void
bh_session_accept(struct bh_node *node)
{
    BH_AUTO(bh_fd_close) int fd = accept4(node->listener, NULL, NULL, SOCK_CLOEXEC);

    bh_node_assert(node);
    if (fd < 0 || !bh_host_allows(node, fd))
        return;
    bh_node_disconnect(node);
    node->link = bh_link_new(bh_fd_steal(&fd));
    node->hello_received = false;
}

/* ---- what each message does ---- */

static void
session_repeat_ends(struct bh_node *node)
{
    struct bh_msg_synced synced = { .ends = 0 };

    for (uint32_t i = 0; i < node->state.job_count; i++) {
        bh_state_assert_job(&node->state, &node->state.jobs[i]);
        if (!node->state.jobs[i].ended)
            continue;
        bh_job_report_end(node, &node->state.jobs[i]);
        synced.ends++;
    }
    bh_node_send(node, BH_MSG_SYNCED, &synced);
}

static bh_rc
session_receive_hello(struct bh_node *node, struct bh_orders *orders, const void *message, struct bh_err *err)
{
    const struct bh_msg_hello *hello = message;
    bh_rc rc;

    bh_node_assert(node);
    BH_ASSERT(node->link && !node->hello_received);
    if (hello->version != BH_WIRE_VERSION)
        return bh_err_set(err, BH_INVALID, "the daemon speaks version %u, this node %u", hello->version,
                          (unsigned)BH_WIRE_VERSION);
    rc = bh_node_epochs_receive(node, orders, hello, err);
    if (rc != BH_OK)
        return rc;
    node->hello_received = true;
    node->sample_at = bh_time_monotonic() + node->conf.sample_interval_ms * BH_NS_PER_MS;
    bh_log(NODE_CONNECTED, BH_STR("site", hello->site), BH_U64("boot", hello->boot));
    node->inventory_known = false;
    bh_report_inventory(node);
    node->reported_changes = UINT64_MAX; /* none on this connection */
    bh_order_send_marks(node);
    bh_scrub_repeat(node);
    bh_health_connected(node);
    bh_verify_connected(node);
    bh_unpack_connected(node);
    bh_orders_repeat(orders);
    session_repeat_ends(node);
    return BH_OK;
}

static bh_rc
session_acknowledge(struct bh_node *node, struct bh_orders *orders, const void *message, struct bh_err *err)
{
    const struct bh_msg_ack *ack = message;

    if (ack->order)
        bh_orders_acknowledge(orders, ack->order);
    if (ack->lease)
        bh_job_forget(node, ack->lease);
    if (ack->receipt)
        bh_scrub_acknowledge(node, ack->receipt);
    return BH_OK;
}

static bool
session_is_named(const struct bh_list *list, uint64_t id)
{
    const struct bh_msg_retain_item *items = list->items;

    for (uint32_t i = 0; i < list->count; i++) {
        if (items[i].id == id)
            return true;
    }
    return false;
}

/* What ended and is unknown to the daemon is forgotten, what runs is ended first. */
static bh_rc
session_retain(struct bh_node *node, struct bh_orders *orders, const void *message, struct bh_err *err)
{
    const struct bh_msg_retain *retain = message;
    struct bh_err ignored;
    bh_rc rc = bh_order_watermark_compare(node, retain->marks, err);

    if (rc != BH_OK)
        return rc;
    bh_order_send_marks(node);
    for (uint32_t i = node->state.job_count; i-- > 0;) {
        struct bh_job *job = &node->state.jobs[i];
        uint64_t lease = job->record.lease;

        bh_state_assert_job(&node->state, job);
        if (session_is_named(&retain->leases, lease) || job->unwanted)
            continue;
        if (job->ended) {
            bh_job_forget(node, lease);
            continue;
        }
        bh_log(JOB_COLLECTED, BH_U64("lease", lease));
        job->unwanted = true;
        (void)!bh_unpack_stop(node, &(struct bh_msg_stop){ .lease = lease }, &ignored);
        bh_job_forget(node, lease); /* one that waited for its image has ended by now */
    }
    node->orphaned_count = 0;
    for (uint32_t i = 0; i < node->state.partition_count; i++) {
        bh_state_assert_partition(&node->state.partitions[i]);
        if (!session_is_named(&retain->partitions, node->state.partitions[i].partition))
            node->orphaned[node->orphaned_count++] = node->state.partitions[i].partition;
    }
    bh_session_collect(node);
    return BH_OK;
}

static bh_rc
session_verify(struct bh_node *node, struct bh_orders *orders, const void *message, struct bh_err *err)
{
    bh_verify_request(node, message);
    return BH_OK;
}

static bh_rc
session_order_now(struct bh_node *node, struct bh_orders *orders, uint32_t number, const void *message,
                  struct bh_err *err)
{
    bh_rc rc = bh_orders_accept(orders, number, message, err);

    if (rc != BH_FULL)
        return rc;
    rc = bh_orders_perform(orders, err);
    return rc == BH_OK ? bh_orders_accept(orders, number, message, err) : rc;
}

/* ---- the table of what may be said ---- */

enum stage { BEFORE_HELLO, AFTER_HELLO };

static const struct {
    enum stage stage; /* in which it may be said */
    bool order;
    bh_rc (*accepts)(struct bh_node *node, struct bh_orders *orders, const void *message, struct bh_err *err);
} permitted[] = {
    [BH_MSG_HELLO] = { BEFORE_HELLO, false, session_receive_hello },
    [BH_MSG_CARVE] = { AFTER_HELLO, true, NULL },
    [BH_MSG_DESTROY] = { AFTER_HELLO, true, NULL },
    [BH_MSG_START] = { AFTER_HELLO, true, NULL },
    [BH_MSG_SUSPEND] = { AFTER_HELLO, true, NULL },
    [BH_MSG_RESUME] = { AFTER_HELLO, true, NULL },
    [BH_MSG_STOP] = { AFTER_HELLO, true, NULL },
    [BH_MSG_RESET] = { AFTER_HELLO, true, NULL },
    [BH_MSG_TEST] = { AFTER_HELLO, true, NULL },
    [BH_MSG_ACK] = { AFTER_HELLO, false, session_acknowledge },
    [BH_MSG_RETAIN] = { AFTER_HELLO, false, session_retain },
    [BH_MSG_VERIFY] = { AFTER_HELLO, false, session_verify },
};

static bh_rc
session_accepts(struct bh_node *node, struct bh_orders *orders, const struct bh_frame *frame,
                struct bh_arena *arena, struct bh_err *err)
{
    enum stage stage = node->hello_received ? AFTER_HELLO : BEFORE_HELLO;
    const struct bh_fields *fields = bh_message_fields(frame->number);
    void *message;
    bh_rc rc;

    if (frame->number >= BH_COUNT(permitted) || !fields
        || (!permitted[frame->number].order && !permitted[frame->number].accepts))
        return bh_err_set(err, BH_INVALID, "message %u is not for a node", frame->number);
    if (permitted[frame->number].stage != stage)
        return bh_err_set(err, BH_INVALID, "%s is unexpected", bh_message_name(frame->number));
    message = bh_arena_alloc(arena, fields->size);
    if (!message)
        return bh_err_set(err, BH_FULL, "too many orders at once");
    rc = bh_frame_decode(frame, fields, message, arena, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", bh_message_name(frame->number));
    if (permitted[frame->number].order)
        return session_order_now(node, orders, frame->number, message, err);
    rc = bh_orders_perform(orders, err); /* in the order in which they were said */
    return rc == BH_OK ? permitted[frame->number].accepts(node, orders, message, err) : rc;
}

/* A full disk is no malformed frame; the daemon comes again each second, and meets it again. */
static void
session_log_refused(struct bh_node *node, const struct bh_err *err)
{
    bh_ns now = bh_time_monotonic();

    if (err->sys_kind != BH_SYS_ERRNO) {
        bh_log(FRAME_REFUSED, BH_ERRLOG(err));
        return;
    }
    if (node->refused_log_at && now - node->refused_log_at < REFUSED_LOG_INTERVAL)
        return;
    node->refused_log_at = now;
    bh_log(DAEMON_UNHEARD, BH_ERRLOG(err), BH_STR("next", err->hint));
}

void
bh_session_read_frame(struct bh_node *node, struct bh_orders *orders)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(MESSAGE_BYTES_MAX);
    struct bh_link *link = node->link;
    struct bh_frame frame;
    struct bh_err err;
    bh_rc rc = bh_link_readable(link, &err);
    bool closed = rc != BH_OK;

    BH_ASSERT(link);
    bh_node_assert(node);
    while (rc == BH_OK && node->link == link) {
        rc = bh_link_next(link, &frame, &err);
        if (rc == BH_OK)
            rc = session_accepts(node, orders, &frame, arena, &err);
    }
    if (rc != BH_OK && rc != BH_NOT_FOUND && !closed) {
        session_log_refused(node, &err);
        closed = true;
    }
    if (closed && node->link == link)
        bh_node_disconnect(node);
    if (bh_orders_perform(orders, &err) != BH_OK) {
        bh_log(EFFECT_FAILED, BH_STR("what", "journal"), BH_ERRLOG(&err));
        bh_node_disconnect(node);
    }
}

/* ---- collecting ---- */

void
bh_session_collect(struct bh_node *node)
{
    uint32_t left = 0;
    struct bh_err err;

    bh_node_assert(node);
    for (uint32_t i = 0; i < node->orphaned_count; i++) {
        uint64_t id = node->orphaned[i];

        const struct bh_node_partition *partition = bh_state_partition(&node->state, id);

        if (!partition)
            continue;
        if (node->inventory_known && bh_node_inventory_is_unread(node, partition->gpu)) /* until it answers */
            node->orphaned[left++] = id;
        else if (bh_node_partition_destroy(node, id, 0, &err) == BH_OK)
            bh_log(INSTANCE_COLLECTED, BH_U64("partition", id));
        else
            node->orphaned[left++] = id;
    }
    node->orphaned_count = left;
}
