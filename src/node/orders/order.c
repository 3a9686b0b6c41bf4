#include "node/orders/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/utf8.h"
#include "model/share.h"
#include "node/common/exit_record.h"
#include "node/common/path.h"
#include "node/core/gpu_error.h"
#include "node/core/state_check.h"
#include "node/job/checkpoint.h"
#include "node/job/job.h"
#include "node/job/job_log.h"
#include "node/job/scrub.h"
#include "node/job/unpack.h"
#include "node/orders/order_internal.h"
#include "node/orders/order_recovery.h"
#include "node/orders/order_watermark.h"
#include "node/partition/partition.h"
#include "node/partition/reset.h"
#include "node/placement/handover.h"
#include "node/placement/mig_change.h"
#include "node/placement/placement.h"
#include "node/placement/share_slot.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/keeper.h"
#include "node/sandbox/sandbox_spec.h"
#include "node/verify/verify_fence.h"

enum { NVML_IN_USE = 19 }; /* include/bulkhead/nvml_abi.h has it; the node knows no NVML */

#define HELD_UP_FIRST (100 * BH_NS_PER_MS)
#define HELD_UP_MOST (4 * BH_NS_PER_S)
#define RETRY_INTERVAL (20 * BH_NS_PER_MS)

struct bh_orders *
bh_orders_new(struct bh_node *node)
{
    struct bh_orders *orders = calloc(1, sizeof *orders);

    BH_ASSERT(orders);
    orders->node = node;
    return orders;
}

void
bh_orders_free(struct bh_orders *orders)
{
    if (orders)
        bh_pending_orders_clear(&orders->waiting);
    free(orders);
}

/* ---- what each order is ---- */

/* Every order begins with its number. */
static uint64_t
orders_number_of(const void *message)
{
    uint64_t order;

    memcpy(&order, message, sizeof order);
    return order;
}
_Static_assert(offsetof(struct bh_msg_carve, order) == 0, "order comes first");
_Static_assert(offsetof(struct bh_msg_destroy, order) == 0, "order comes first");
_Static_assert(offsetof(struct bh_msg_start, order) == 0, "order comes first");
_Static_assert(offsetof(struct bh_msg_lease, order) == 0, "order comes first");
_Static_assert(offsetof(struct bh_msg_stop, order) == 0, "order comes first");
_Static_assert(offsetof(struct bh_msg_gpu_order, order) == 0, "order comes first");

/* Fill the note of an order and check what can be checked before it is begun. */
typedef bh_rc (*record_fn)(struct bh_node *node, const void *message, struct bh_node_record *record,
                           struct bh_err *err);
/* What else came of an order. */
struct effect {
    bool held;  /* of a suspend: its outcome; of a carve or destroy that failed: the partition exists with
                 * memory that is not clean */
    bool waits; /* BH_OK, and something runs for it: it is performed again when that has ended */
};
typedef bh_rc (*perform_fn)(struct bh_node *node, const void *message, struct effect *ret_effect,
                            struct bh_err *err);

static bh_rc
order_record_carve(struct bh_node *node, const void *message, struct bh_node_record *record,
                   struct bh_err *err)
{
    const struct bh_msg_carve *carve = message;

    record->partition.partition = carve->partition;
    record->partition.start = carve->start;
    record->tenant = carve->tenant;
    record->job = carve->job;
    snprintf(record->partition.gpu, sizeof record->partition.gpu, "%s", carve->gpu);
    snprintf(record->partition.profile, sizeof record->partition.profile, "%s", carve->profile);
    record->partition.cap_bytes = carve->cap_bytes;
    record->partition.context_bytes = carve->context_bytes;
    record->partition.share_weight = carve->weight;
    record->partition.share_flags = (carve->hard ? BH_SHARE_IS_HARD : 0)
                                    | (carve->latency ? BH_SHARE_IS_LATENCY : 0)
                                    | (carve->multiplexed ? BH_SHARE_IS_MULTIPLEXED : 0);
    /* the rest is checked when its turn comes: an order before it may make the room */
    return bh_node_partition_check_allowed(node, carve->gpu, err);
}

static bh_rc
order_record_destroy(struct bh_node *node, const void *message, struct bh_node_record *record,
                     struct bh_err *err)
{
    record->partition.partition = ((const struct bh_msg_destroy *)message)->partition;
    return BH_OK;
}

static bh_rc
order_lend_partitions(const struct bh_node *node, const struct bh_msg_start *start,
                      struct bh_node_record *lease, struct bh_err *err)
{
    for (uint32_t i = 0; i < start->partition_count; i++) {
        const struct bh_node_partition *partition =
            bh_state_partition(&node->state, start->partitions[i].partition);

        if (!partition)
            return bh_err_set(err, BH_NOT_FOUND, "partitions[%u]: no partition %" PRIu64 " on this node", i,
                              start->partitions[i].partition);
        lease->lent[lease->lent_count] = *partition;
        if (bh_placement_is_share(partition))
            bh_share_slot_lend(start, &lease->lent[lease->lent_count]);
        lease->lent_count++;
    }
    return BH_OK;
}

static bh_rc
order_record_start(struct bh_node *node, const void *message, struct bh_node_record *record,
                   struct bh_err *err)
{
    const struct bh_msg_start *start = message;

    record->lease = start->lease;
    if (bh_state_job(&node->state, start->lease))
        return bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " exists already", start->lease);
    return bh_verify_check_start(node, start, err);
}

/* The lease is noted right behind its order: its range of user ids must never be
 * another's.  `ret_waits`: not yet, a partition is scrubbed first. */
static bh_rc
order_record_new_lease(struct bh_node *node, const struct bh_msg_start *start, bool *ret_waits,
                       struct bh_err *err)
{
    struct bh_node_record lease = { .kind = BH_NODE_RECORD_LEASE,
                                    .lease = start->lease,
                                    .job = start->job,
                                    .tenant = start->tenant_id,
                                    .boundary = start->boundary };
    bh_rc rc = order_lend_partitions(node, start, &lease, err);

    bh_party_of(start->tenant, lease.party);
    if (rc == BH_OK)
        rc = bh_scrub_prepare(node, &lease, start->order, ret_waits, err);
    if (rc != BH_OK || *ret_waits)
        return rc;
    lease.slot = bh_helper_sandbox_free_slot(node);
    if (lease.slot == node->conf.uid_ranges) {
        bh_err_set(err, BH_FULL, "all %u ranges of user ids are in use", node->conf.uid_ranges);
        return bh_err_hint(err, "raise uid_ranges in node.conf");
    }
    snprintf(lease.boot, sizeof lease.boot, "%s", node->boot);
    rc = bh_state_record_owner(&node->state, &lease, err);
    return rc == BH_OK ? bh_state_record(&node->state, &lease, err) : rc;
}

static bh_rc
order_record_lease(struct bh_node *node, const void *message, struct bh_node_record *record,
                   struct bh_err *err)
{
    record->lease = ((const struct bh_msg_lease *)message)->lease;
    return BH_OK;
}

static bh_rc
order_record_stop(struct bh_node *node, const void *message, struct bh_node_record *record,
                  struct bh_err *err)
{
    record->lease = ((const struct bh_msg_stop *)message)->lease;
    return BH_OK;
}

static bh_rc
order_scrub_carved(struct bh_node *node, const struct bh_scrub_request *request, struct effect *ret_effect,
                   struct bh_err *err)
{
    bh_rc rc = bh_scrub_before(node, request, &ret_effect->waits, err);

    ret_effect->held = rc != BH_OK;
    return rc == BH_OK && !ret_effect->waits
               ? bh_share_slot_clear(node, request->partition, request->tenant, err)
               : rc;
}

static bh_rc
order_record_gpu(struct bh_node *node, const void *message, struct bh_node_record *record, struct bh_err *err)
{
    const struct bh_msg_gpu_order *order = message;

    snprintf(record->partition.gpu, sizeof record->partition.gpu, "%s", order->gpu);
    return bh_node_partition_check_allowed(node, order->gpu, err);
}

static bh_rc
order_perform_reset(struct bh_node *node, const void *message, struct effect *ret_effect, struct bh_err *err)
{
    return bh_reset_run(node, message, &ret_effect->waits, err);
}

static bh_rc
order_perform_test(struct bh_node *node, const void *message, struct effect *ret_effect, struct bh_err *err)
{
    return bh_reset_test(node, ((const struct bh_msg_gpu_order *)message)->gpu, err);
}

static bh_rc
order_perform_carve(struct bh_node *node, const void *message, struct effect *ret_effect, struct bh_err *err)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_ORDER,
                                     .order = orders_number_of(message),
                                     .message = BH_MSG_CARVE };
    bh_rc rc = order_record_carve(node, message, &record, err);
    struct bh_scrub_request request = bh_scrub_request_of(&record);

    if (rc == BH_OK && bh_node_partition_is_carved(node, &record.partition))
        return order_scrub_carved(node, &request, ret_effect, err);
    ret_effect->waits = rc == BH_OK && bh_handover_is_held(node, &record.partition);
    if (ret_effect->waits)
        return BH_OK;
    if (rc != BH_OK)
        return rc;
    rc = bh_node_partition_begin(node, &record, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_node_partition_carve_check(node, &record.partition, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_placement_is_share(&record.partition)
             ? bh_share_slot_check(node, &record.partition, record.tenant, err)
             : bh_mig_change_check(node, record.partition.gpu, record.tenant, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_state_record(&node->state, &record, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_node_partition_carve(node, &record, err);
    if (rc != BH_OK)
        return rc;
    return order_scrub_carved(node, &request, ret_effect, err);
}

static bh_rc
order_perform_destroy(struct bh_node *node, const void *message, struct effect *ret_effect,
                      struct bh_err *err)
{
    const struct bh_msg_destroy *destroy = message;
    struct bh_scrub_request request = { .order = destroy->order, .partition = destroy->partition };
    bh_rc rc = bh_scrub_repeat_failed(node, &request, &ret_effect->waits, err);

    ret_effect->held = rc != BH_OK;
    return rc == BH_OK && !ret_effect->waits
               ? bh_node_partition_destroy(node, destroy->partition, destroy->tenant, err)
               : rc;
}

static bh_rc
order_perform_start(struct bh_node *node, const void *message, struct effect *ret_effect, struct bh_err *err)
{
    const struct bh_msg_start *start = message;
    bh_rc rc = bh_unpack_wanted(start) ? bh_unpack_begin(node, start, err) : bh_job_start(node, start, err);

    if (rc != BH_OK)
        bh_job_give_up(node, start, err);
    return rc;
}

static bh_rc
order_perform_suspend(struct bh_node *node, const void *message, struct effect *ret_effect,
                      struct bh_err *err)
{
    return bh_checkpoint_suspend(node, message, &ret_effect->held, &ret_effect->waits, err);
}

static bh_rc
order_perform_resume(struct bh_node *node, const void *message, struct effect *ret_effect, struct bh_err *err)
{
    return bh_checkpoint_resume(node, message, &ret_effect->waits, err);
}

static bh_rc
order_perform_stop(struct bh_node *node, const void *message, struct effect *ret_effect, struct bh_err *err)
{
    return bh_unpack_stop(node, message, err);
}

static const struct {
    record_fn record;
    perform_fn perform;
} kinds[] = {
    [BH_MSG_CARVE] = { order_record_carve, order_perform_carve },
    [BH_MSG_DESTROY] = { order_record_destroy, order_perform_destroy },
    [BH_MSG_START] = { order_record_start, order_perform_start },
    [BH_MSG_SUSPEND] = { order_record_lease, order_perform_suspend },
    [BH_MSG_RESUME] = { order_record_lease, order_perform_resume },
    [BH_MSG_STOP] = { order_record_stop, order_perform_stop },
    [BH_MSG_RESET] = { order_record_gpu, order_perform_reset },
    [BH_MSG_TEST] = { order_record_gpu, order_perform_test },
};

static void
orders_assert(const struct bh_orders *orders)
{
    BH_ASSERT(orders->node && orders->count <= BH_COUNT(orders->pending));
    bh_pending_orders_assert(&orders->waiting);
    bh_node_assert(orders->node);
}

static void
order_assert_pending(const struct bh_order_pending *pending)
{
    BH_ASSERT(pending->number < BH_COUNT(kinds) && kinds[pending->number].perform);
    BH_ASSERT(pending->message && pending->order != 0
              && orders_number_of(pending->message) == pending->order);
    BH_ASSERT(!pending->waits || pending->number == BH_MSG_START);
}

/* ---- taking ---- */

static void orders_recover(struct bh_node *node, const struct bh_node_record *order);

static bool
order_is_in_batch(const struct bh_orders *orders, uint64_t order)
{
    for (uint32_t i = 0; i < orders->count; i++) {
        if (orders->pending[i].order == order)
            return true;
    }
    return bh_pending_orders_has(&orders->waiting, order);
}

/* A start that is answered when it was inspected. */
static bool
order_is_being_checked(const struct bh_node *node, const struct bh_node_record *order)
{
    const struct bh_job *job =
        order->message == BH_MSG_START ? bh_state_job(&node->state, order->lease) : NULL;

    return job && job->start_order == order->order;
}

bh_rc
bh_orders_accept(struct bh_orders *orders, uint32_t number, const void *message, struct bh_err *err)
{
    struct bh_node *node = orders->node;
    struct bh_node_record record = { .kind = BH_NODE_RECORD_ORDER,
                                     .order = orders_number_of(message),
                                     .message = number };
    const struct bh_order *known;
    struct bh_order_pending *pending;
    bh_rc rc;

    BH_ASSERT(number < BH_COUNT(kinds) && kinds[number].record);
    orders_assert(orders);
    known = bh_state_order(&node->state, record.order);
    if (record.order == 0)
        return bh_err_set(err, BH_INVALID, "order number 0");
    if (known && known->record.message != number)
        return bh_err_set(err, BH_INVALID, "order %" PRIu64 " was a %s before", record.order,
                          bh_message_name(known->record.message));
    if (known && order_is_being_checked(node, &known->record))
        return BH_OK;
    if (known
        && (known->done || order_is_in_batch(orders, record.order)
            || bh_unpack_is_pending(node, known->record.lease))) {
        if (known->done)
            bh_order_send_outcome(node, known);
        return BH_OK;
    }
    if (known) { /* noted, and the disk failed before it was performed */
        struct bh_node_record before = known->record;

        orders_recover(node, &before);
        known = bh_state_order(&node->state, record.order);
        if (known && order_is_being_checked(node, &known->record))
            return BH_OK;
        if (known)
            return known->done
                       ? BH_OK
                       : bh_err_set(err, BH_IO, "order %" PRIu64 " cannot be completed", record.order);
    }
    if (orders->count == BH_ORDERS_BATCH_MAX)
        return bh_err_set(err, BH_FULL, "the batch is full");
    pending = &orders->pending[orders->count];
    *pending = (struct bh_order_pending){ .number = number, .order = record.order, .message = message };
    pending->refused = kinds[number].record(node, message, &record, &pending->err);
    rc = number == BH_MSG_STOP ? BH_OK : bh_state_reserve(&node->state, err);
    if (rc == BH_OK)
        rc = bh_state_record(&node->state, &record, err);
    if (rc != BH_OK)
        return rc;
    if (pending->refused == BH_OK && number == BH_MSG_START)
        pending->refused = order_record_new_lease(node, message, &pending->waits, &pending->err);
    orders->count++;
    return BH_OK;
}

/* ---- performing ---- */

/* The GPU that an order changes, or has scrubbed; "": none, or it is not known. */
static void
order_gpu_of(const struct bh_node *node, const struct bh_order_pending *pending, char ret_gpu[BH_UUID_MAX])
{
    const struct bh_msg_destroy *destroy = pending->message;
    const struct bh_msg_start *start = pending->message;
    const struct bh_node_partition *partition = NULL;
    const char *gpu = "";

    if (pending->number == BH_MSG_CARVE)
        gpu = ((const struct bh_msg_carve *)pending->message)->gpu;
    else if (pending->number == BH_MSG_RESET || pending->number == BH_MSG_TEST)
        gpu = ((const struct bh_msg_gpu_order *)pending->message)->gpu;
    else if (pending->number == BH_MSG_DESTROY)
        partition = bh_state_partition(&node->state, destroy->partition);
    else if (pending->number == BH_MSG_START && start->partition_count > 0)
        partition = bh_state_partition(&node->state, start->partitions[0].partition);
    snprintf(ret_gpu, BH_UUID_MAX, "%s", partition ? partition->gpu : gpu);
}

static bool
order_is_held_up(const struct bh_order_pending *pending)
{
    return pending->number == BH_MSG_DESTROY && pending->err.sys_kind == BH_SYS_NVML
           && pending->err.sys == NVML_IN_USE;
}

/* Put the order on the list, where it is not yet. */
static struct bh_pending_order *
orders_defer(struct bh_orders *orders, const struct bh_order_pending *pending,
             struct bh_pending_order *waiting)
{
    char gpu[BH_UUID_MAX];

    order_gpu_of(orders->node, pending, gpu);
    return waiting ? waiting
                   : bh_pending_orders_add(&orders->waiting, pending->number, pending->message, gpu);
}

/* The driver says that it is in use: try it again, with longer and longer pauses; false: no
 * more, or there is no room. */
static bool
order_hold_off(struct bh_orders *orders, const struct bh_order_pending *pending,
               struct bh_pending_order *waiting)
{
    bh_ns now = bh_time_monotonic(), most = orders->node->conf.destroy_wait_ms * BH_NS_PER_MS;

    if (most == 0 || (waiting && waiting->until && waiting->until <= now))
        return false;
    waiting = orders_defer(orders, pending, waiting);
    if (!waiting)
        return false;
    waiting->until = waiting->until ? waiting->until : now + most;
    waiting->pause = !waiting->pause                     ? HELD_UP_FIRST
                     : waiting->pause > HELD_UP_MOST / 2 ? HELD_UP_MOST
                                                         : 2 * waiting->pause;
    waiting->at = now + waiting->pause;
    return true;
}

static void
order_record_gpu_error(struct bh_node *node, const struct bh_order_pending *pending, const char *gpu,
                       bh_rc rc)
{
    if (*gpu && (pending->number == BH_MSG_CARVE || pending->number == BH_MSG_DESTROY))
        bh_gpu_error_record(node, gpu, rc == BH_OK ? NULL : &pending->err);
}

/* Before a start that waited: its lease was not noted, and what was looked at when it came may
 * have changed since. */
static bh_rc
order_record_late(struct bh_node *node, const struct bh_msg_start *start, bool *ret_waits, struct bh_err *err)
{
    struct bh_node_record unused = { .kind = BH_NODE_RECORD_ORDER };
    bh_rc rc = order_record_start(node, start, &unused, err);

    if (rc == BH_OK)
        rc = order_record_new_lease(node, start, ret_waits, err);
    return rc == BH_OK && !*ret_waits ? bh_state_sync(&node->state, err) : rc;
}

/* A start that still waits is not to begin once its lease is stopped. */
static void
order_withdraw_start(struct bh_orders *orders, uint64_t lease)
{
    uint32_t at = bh_pending_orders_find_start(&orders->waiting, lease);
    struct bh_order_pending pending = { .number = BH_MSG_START };

    if (at == orders->waiting.count)
        return;
    pending.order = orders->waiting.item[at].order;
    bh_err_set(&pending.err, BH_CONFLICT, "it was stopped before it started");
    bh_pending_orders_remove(&orders->waiting, at);
    bh_scrub_leave(orders->node, pending.order);
    bh_order_answer_with(orders->node, &pending, BH_CONFLICT, false);
}

/* Perform the order, unless it comes behind others on its GPU, or behind a scrub of one that was
 * taken back: then it `waits`. */
static bh_rc
orders_carry_out(struct bh_orders *orders, struct bh_order_pending *pending, bool waited,
                 struct effect *ret_effect)
{
    struct bh_node *node = orders->node;
    char gpu[BH_UUID_MAX];
    bh_rc rc = pending->refused;

    order_assert_pending(pending);
    if (pending->number == BH_MSG_STOP)
        order_withdraw_start(orders, ((const struct bh_msg_stop *)pending->message)->lease);
    order_gpu_of(node, pending, gpu);
    ret_effect->waits = pending->waits
                        || (!waited && pending->number != BH_MSG_START
                            && (bh_pending_orders_is_behind(&orders->waiting, orders->waiting.count, gpu)
                                || bh_scrub_runs_on(node, gpu)));
    if (rc == BH_OK && !waited && orders->waiting.count == BH_PENDING_ORDERS_MAX
        && (*gpu || ret_effect->waits))
        rc = bh_err_set(&pending->err, BH_FULL, "%d orders are pending already", BH_PENDING_ORDERS_MAX);
    if (rc == BH_OK && waited && pending->number == BH_MSG_START)
        rc = order_record_late(node, pending->message, &ret_effect->waits, &pending->err);
    if (rc == BH_OK && !ret_effect->waits)
        rc = kinds[pending->number].perform(node, pending->message, ret_effect, &pending->err);
    if (rc != BH_OK || !ret_effect->waits)
        order_record_gpu_error(node, pending, gpu, rc);
    return rc;
}

/* `waiting`: its place on the list, or NULL.  False: it has none and needs one, or keeps it. */
static bool
orders_perform(struct bh_orders *orders, struct bh_order_pending *pending, struct bh_pending_order *waiting)
{
    struct bh_node *node = orders->node;
    struct effect effect = { .held = false };
    bh_rc rc = orders_carry_out(orders, pending, waiting != NULL, &effect);

    orders_assert(orders);
    if (rc == BH_OK && effect.waits) {
        waiting = orders_defer(orders, pending, waiting);
        BH_ASSERT(waiting); /* there was room */
        waiting->at = bh_time_monotonic() + RETRY_INTERVAL;
        return false;
    }
    if (rc != BH_OK && order_is_held_up(pending) && order_hold_off(orders, pending, waiting))
        return false;
    bh_scrub_leave(node, pending->order);
    if (rc != BH_OK || pending->number != BH_MSG_START
        || !bh_unpack_is_pending(node, ((const struct bh_msg_start *)pending->message)->lease))
        bh_order_answer_with(node, pending, rc, effect.held); /* else unpack.c does */
    return true;
}

bh_rc
bh_orders_perform(struct bh_orders *orders, struct bh_err *err)
{
    bh_rc rc = orders->count > 0 ? bh_state_sync(&orders->node->state, err) : BH_OK;

    orders_assert(orders);
    if (rc == BH_OK)
        rc = bh_order_watermark_write(orders->node, err);

    for (uint32_t i = 0; i < orders->count && rc == BH_OK; i++)
        (void)orders_perform(orders, &orders->pending[i], NULL);
    orders->count = 0;
    return rc;
}

/* Orders before it must end, or what runs for it, or a scrub there: nothing is to be done until
 * then.  A start comes beside the scrubs of other partitions of its GPU. */
static bool
order_is_blocked(const struct bh_orders *orders, uint32_t at)
{
    const struct bh_pending_order *waiting = &orders->waiting.item[at];

    BH_ASSERT(at < orders->waiting.count);
    return bh_pending_orders_is_behind(&orders->waiting, at, waiting->gpu)
           || bh_scrub_runs(orders->node, waiting->order)
           || (!waiting->start_of && bh_scrub_runs_on(orders->node, waiting->gpu))
           || bh_checkpoint_runs(orders->node, waiting->order) || bh_reset_runs(orders->node, waiting->order);
}

/* True: it has its outcome. */
static bool
orders_retry(struct bh_orders *orders, uint32_t at, bh_ns now)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = NULL;
    struct bh_pending_order *waiting = &orders->waiting.item[at];
    struct bh_order_pending pending = { .number = waiting->copy.number, .order = waiting->order };

    BH_ASSERT(waiting->order != 0 && waiting->copy.number < BH_COUNT(kinds));
    if (waiting->at > now || order_is_blocked(orders, at))
        return false;
    arena = bh_arena_new(BH_ORDER_COPY_BYTES_MAX);
    pending.message = bh_order_copy_message(&waiting->copy, arena);
    return orders_perform(orders, &pending, waiting);
}

/* Those on the list that are due; the monotonic time of the next try, or 0. */
static bh_ns
order_tick_pending(struct bh_orders *orders, bh_ns now)
{
    struct bh_pending_orders *list = &orders->waiting;
    bh_ns next = 0;

    for (uint32_t i = 0; i < list->count;) {
        if (orders_retry(orders, i, now))
            bh_pending_orders_remove(list, i);
        else
            i++;
    }
    for (uint32_t i = 0; i < list->count; i++)
        if (!order_is_blocked(orders, i))
            next = bh_node_sooner(next, list->item[i].at);
    return next && next <= now ? now + BH_NS_PER_MS : next;
}

void
bh_orders_acknowledge(struct bh_orders *orders, uint64_t order)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_FORGET_ORDER, .order = order };
    const struct bh_order *known = bh_state_order(&orders->node->state, order);
    struct bh_err err;

    orders_assert(orders);
    if (known && known->done && bh_state_record(&orders->node->state, &record, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("order", order), BH_ERRLOG(&err));
}

void
bh_orders_drop(struct bh_orders *orders, uint64_t from)
{
    struct bh_node_state *state = &orders->node->state;
    struct bh_err err;

    orders_assert(orders);
    for (uint32_t i = orders->waiting.count; i-- > 0;)
        if (orders->waiting.item[i].order >= from) {
            bh_scrub_leave(orders->node, orders->waiting.item[i].order);
            bh_pending_orders_remove(&orders->waiting, i);
        }
    for (uint32_t i = state->order_count; i-- > 0;) {
        struct bh_node_record forget = { .kind = BH_NODE_RECORD_FORGET_ORDER,
                                         .order = state->orders[i].record.order };

        if (forget.order >= from && bh_state_record(state, &forget, &err) != BH_OK)
            bh_log(EFFECT_FAILED, BH_U64("order", forget.order), BH_ERRLOG(&err));
    }
}

void
bh_orders_repeat(struct bh_orders *orders)
{
    const struct bh_node_state *state = &orders->node->state;

    orders_assert(orders);
    for (uint32_t i = 0; i < state->order_count; i++) {
        bh_state_assert_order(state, &state->orders[i]);
        if (state->orders[i].done)
            bh_order_send_outcome(orders->node, &state->orders[i]);
    }
}

bh_ns
bh_orders_tick(struct bh_orders *orders, bh_ns now)
{
    bh_ns next, copy;
    struct bh_err err;

    orders_assert(orders);
    next = order_tick_pending(orders, now);
    if (bh_state_tick(&orders->node->state, now, &copy, &err) != BH_OK) {
        bh_log(EFFECT_FAILED, BH_STR("what", "journal"), BH_ERRLOG(&err));
        bh_node_disconnect(orders->node);
    }
    return bh_node_sooner(next, copy);
}

/* ---- repairing ---- */

/* What can be repeated without harm is left to the daemon to order again. */
static void
orders_recover(struct bh_node *node, const struct bh_node_record *order)
{
    struct bh_node_record forget = { .kind = BH_NODE_RECORD_FORGET_ORDER, .order = order->order };
    struct bh_err err;

    BH_ASSERT(order->kind == BH_NODE_RECORD_ORDER && order->order != 0);
    if (!bh_order_recovery_is_done(node, order))
        (void)!bh_state_record(&node->state, &forget, &err);
    else if (!order_is_being_checked(node, order))
        bh_order_answer(node, order->order, BH_ORDER_DONE, BH_OK, "");
}

void
bh_orders_repair(struct bh_orders *orders)
{
    struct bh_node_state *state = &orders->node->state;

    for (uint32_t i = 0; i < state->order_count;) {
        struct bh_node_record order = state->orders[i].record;

        if (!state->orders[i].done)
            orders_recover(orders->node, &order);
        /* a forgotten one was replaced by the last: look at the same place again */
        if (i < state->order_count && state->orders[i].record.order == order.order)
            i++;
    }
}
