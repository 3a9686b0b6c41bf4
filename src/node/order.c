#include "node/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/utf8.h"
#include "node/box.h"
#include "node/exit_record.h"
#include "node/job.h"
#include "node/keeper.h"
#include "node/path.h"
#include "node/piece.h"
#include "node/unpack.h"

#define SAVE_AGAIN BH_NS_PER_S

enum outcome { OUTCOME_DONE, OUTCOME_FAILED, OUTCOME_HELD };

struct pending {
    uint32_t number;
    uint64_t order;
    const void *message;
    bh_rc refused;              /* not BH_OK: answer with `err` and begin nothing */
    struct bh_err err;
};

struct bh_orders {
    struct bh_node *node;
    bh_ns save_at;              /* monotonic; not before: outcomes that are still to be noted */
    uint32_t count;
    struct pending pending[BH_ORDERS_BATCH_MAX];
};

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
    free(orders);
}

/* ---- what each order is ---- */

/* Every order begins with its number. */
static uint64_t
number_of(const void *message)
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

/* Fill the note of an order and check what can be checked before it is begun. */
typedef bh_rc (*note_fn)(struct bh_node *node, const void *message, struct bh_note *note,
                         struct bh_err *err);
/* Do it.  `ret_held`: the outcome of a suspend. */
typedef bh_rc (*perform_fn)(struct bh_node *node, const void *message, bool *ret_held,
                            struct bh_err *err);

static bh_rc
note_carve(struct bh_node *node, const void *message, struct bh_note *note, struct bh_err *err)
{
    const struct bh_msg_carve *carve = message;

    note->piece.partition = carve->partition;
    note->piece.start = carve->start;
    snprintf(note->piece.gpu, sizeof note->piece.gpu, "%s", carve->gpu);
    snprintf(note->piece.profile, sizeof note->piece.profile, "%s", carve->profile);
    /* the rest is checked when its turn comes: an order before it may make the room */
    return bh_piece_allowed(node, carve->gpu, err);
}

static bh_rc
note_destroy(struct bh_node *node, const void *message, struct bh_note *note, struct bh_err *err)
{
    note->piece.partition = ((const struct bh_msg_destroy *)message)->partition;
    return BH_OK;
}

static bh_rc
lend_pieces(const struct bh_node *node, const struct bh_msg_start *start, struct bh_note *lease,
            struct bh_err *err)
{
    for (uint32_t i = 0; i < start->piece_count; i++) {
        const struct bh_note_piece *piece
            = bh_state_piece(&node->state, start->pieces[i].partition);

        if (!piece)
            return bh_err_set(err, BH_NOT_FOUND, "pieces[%u]: no piece %" PRIu64
                              " on this node", i, start->pieces[i].partition);
        lease->lent[lease->lent_count++] = *piece;
    }
    return BH_OK;
}

static bh_rc
note_start(struct bh_node *node, const void *message, struct bh_note *note, struct bh_err *err)
{
    const struct bh_msg_start *start = message;

    note->lease = start->lease;
    if (bh_state_job(&node->state, start->lease))
        return bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " exists already", start->lease);
    return BH_OK;
}

/* The lease is noted right behind its order: its range of user ids must never be
 * another's. */
static bh_rc
note_new_lease(struct bh_node *node, const struct bh_msg_start *start, struct bh_err *err)
{
    struct bh_note lease = { .kind = BH_NOTE_LEASE, .lease = start->lease, .job = start->job };
    bh_rc rc = lend_pieces(node, start, &lease, err);

    if (rc == BH_OK)
        rc = bh_job_check_places(node, &lease, err);
    if (rc != BH_OK)
        return rc;
    lease.slot = bh_state_free_slot(&node->state, node->conf.uid_ranges);
    if (lease.slot == node->conf.uid_ranges) {
        bh_err_set(err, BH_FULL, "all %u ranges of user ids are in use", node->conf.uid_ranges);
        return bh_err_hint(err, "raise uid_ranges in node.conf");
    }
    snprintf(lease.boot, sizeof lease.boot, "%s", node->boot);
    return bh_state_note(&node->state, &lease, err);
}

static bh_rc
note_lease(struct bh_node *node, const void *message, struct bh_note *note, struct bh_err *err)
{
    note->lease = ((const struct bh_msg_lease *)message)->lease;
    return BH_OK;
}

static bh_rc
note_stop(struct bh_node *node, const void *message, struct bh_note *note, struct bh_err *err)
{
    note->lease = ((const struct bh_msg_stop *)message)->lease;
    return BH_OK;
}

static bh_rc
perform_carve(struct bh_node *node, const void *message, bool *ret_held, struct bh_err *err)
{
    struct bh_note note = { .kind = BH_NOTE_ORDER, .order = number_of(message),
                            .message = BH_MSG_CARVE };
    bh_rc rc = note_carve(node, message, &note, err);

    if (rc == BH_OK)
        rc = bh_piece_begin(node, &note, err);
    if (rc == BH_OK)
        rc = bh_piece_carve_check(node, &note.piece, err);
    if (rc == BH_OK)
        rc = bh_state_note(&node->state, &note, err);
    return rc == BH_OK ? bh_piece_carve(node, &note, err) : rc;
}

static bh_rc
perform_destroy(struct bh_node *node, const void *message, bool *ret_held, struct bh_err *err)
{
    return bh_piece_destroy(node, ((const struct bh_msg_destroy *)message)->partition, err);
}

/* A job that could not be started holds nothing, and its output says why. */
static void
give_up_start(struct bh_node *node, const struct bh_msg_start *start, const struct bh_err *why)
{
    struct bh_note forget = { .kind = BH_NOTE_FORGET_LEASE, .lease = start->lease };
    struct bh_err ignored;

    bh_job_say(node, start, "cannot start: %.230s%s%.150s", why->msg, *why->hint ? "; " : "",
               why->hint);
    if (bh_state_note(&node->state, &forget, &ignored) != BH_OK)
        bh_state_job(&node->state, start->lease)->look_at = bh_time_monotonic(); /* ends it */
}

static bh_rc
perform_start(struct bh_node *node, const void *message, bool *ret_held, struct bh_err *err)
{
    const struct bh_msg_start *start = message;
    bh_rc rc = bh_unpack_wanted(start) ? bh_unpack_begin(node, start, err)
                                       : bh_job_start(node, start, err);

    if (rc != BH_OK)
        give_up_start(node, start, err);
    return rc;
}

static bh_rc
perform_suspend(struct bh_node *node, const void *message, bool *ret_held, struct bh_err *err)
{
    return bh_job_suspend(node, ((const struct bh_msg_lease *)message)->lease, ret_held, err);
}

static bh_rc
perform_resume(struct bh_node *node, const void *message, bool *ret_held, struct bh_err *err)
{
    return bh_job_resume(node, ((const struct bh_msg_lease *)message)->lease, err);
}

static bh_rc
perform_stop(struct bh_node *node, const void *message, bool *ret_held, struct bh_err *err)
{
    return bh_job_stop(node, message, err);
}

static const struct {
    note_fn note;
    perform_fn perform;
} kinds[] = {
    [BH_MSG_CARVE] = { note_carve, perform_carve },
    [BH_MSG_DESTROY] = { note_destroy, perform_destroy },
    [BH_MSG_START] = { note_start, perform_start },
    [BH_MSG_SUSPEND] = { note_lease, perform_suspend },
    [BH_MSG_RESUME] = { note_lease, perform_resume },
    [BH_MSG_STOP] = { note_stop, perform_stop },
};

/* ---- taking ---- */

static void settle(struct bh_node *node, const struct bh_note *order);

static bool
is_in_batch(const struct bh_orders *orders, uint64_t order)
{
    for (uint32_t i = 0; i < orders->count; i++) {
        if (orders->pending[i].order == order)
            return true;
    }
    return false;
}

bh_rc
bh_orders_take(struct bh_orders *orders, uint32_t number, const void *message,
               struct bh_err *err)
{
    struct bh_node *node = orders->node;
    struct bh_note note = { .kind = BH_NOTE_ORDER, .order = number_of(message),
                            .message = number };
    const struct bh_order *known = bh_state_order(&node->state, note.order);
    struct pending *pending;
    bh_rc rc;

    BH_ASSERT(number < BH_COUNT(kinds) && kinds[number].note);
    if (note.order == 0)
        return bh_err_set(err, BH_INVALID, "order number 0");
    if (known && known->note.message != number)
        return bh_err_set(err, BH_INVALID, "order %" PRIu64 " was a %s before", note.order,
                          bh_message_name(known->note.message));
    if (known && (known->done || is_in_batch(orders, note.order)
                  || bh_unpack_waits(node, known->note.lease))) {
        if (known->done)
            bh_node_send(node, BH_MSG_OUTCOME, &known->outcome);
        return BH_OK;
    }
    if (known) { /* noted, and the disk failed before it was performed */
        struct bh_note before = known->note;

        settle(node, &before);
        known = bh_state_order(&node->state, note.order);
        if (known)
            return known->done ? BH_OK : bh_err_set(err, BH_IO, "order %" PRIu64
                                                    " cannot be settled", note.order);
    }
    if (orders->count == BH_ORDERS_BATCH_MAX)
        return bh_err_set(err, BH_FULL, "the batch is full");
    pending = &orders->pending[orders->count];
    *pending = (struct pending){ .number = number, .order = note.order, .message = message };
    pending->refused = kinds[number].note(node, message, &note, &pending->err);
    rc = number == BH_MSG_STOP ? BH_OK : bh_state_reserve(&node->state, err);
    if (rc == BH_OK)
        rc = bh_state_note(&node->state, &note, err);
    if (rc != BH_OK)
        return rc;
    if (pending->refused == BH_OK && number == BH_MSG_START)
        pending->refused = note_new_lease(node, message, &pending->err);
    orders->count++;
    return BH_OK;
}

/* ---- performing ---- */

static void
answer(struct bh_node *node, const struct pending *pending, enum outcome outcome, bh_rc rc,
       const char *why)
{
    struct bh_note note = { .kind = BH_NOTE_OUTCOME, .order = pending->order,
                            .outcome = outcome, .rc = rc, .at_ns = bh_time_now() };
    const struct bh_order *order;
    struct bh_err err;

    snprintf(note.why, sizeof note.why, "%s", why);
    bh_utf8_scrub(note.why);
    if (bh_state_note(&node->state, &note, &err) != BH_OK) {
        bh_log(EFFECT_FAILED, BH_U64("order", pending->order), BH_ERRLOG(&err));
        bh_state_remember(&node->state, &note);
    }
    order = bh_state_order(&node->state, pending->order);
    if (order && order->done)
        bh_node_send(node, BH_MSG_OUTCOME, &order->outcome);
}

static void
answer_with(struct bh_node *node, const struct pending *pending, bh_rc rc, bool held)
{
    char why[420] = "";

    if (rc != BH_OK) {
        snprintf(why, sizeof why, "%s%s%s", pending->err.msg, *pending->err.hint ? "; " : "",
                 pending->err.hint);
        bh_log(EFFECT_FAILED, BH_U64("order", pending->order),
               BH_STR("kind", bh_message_name(pending->number)), BH_STR("why", why));
    }
    answer(node, pending, rc != BH_OK ? OUTCOME_FAILED : held ? OUTCOME_HELD : OUTCOME_DONE, rc,
           why);
}

static void
perform(struct bh_node *node, struct pending *pending)
{
    bool held = false;
    bh_rc rc = pending->refused;

    if (rc == BH_OK)
        rc = kinds[pending->number].perform(node, pending->message, &held, &pending->err);
    if (rc == BH_OK && pending->number == BH_MSG_START
        && bh_unpack_waits(node, ((const struct bh_msg_start *)pending->message)->lease))
        return; /* bh_orders_start_now answers */
    answer_with(node, pending, rc, held);
}

void
bh_orders_start_now(struct bh_node *node, const struct bh_msg_start *start, bh_rc rc,
                    const struct bh_err *err)
{
    struct pending pending = { .number = BH_MSG_START, .order = start->order, .err = *err };

    if (rc == BH_OK)
        rc = bh_job_start(node, start, &pending.err);
    if (rc != BH_OK)
        give_up_start(node, start, &pending.err);
    answer_with(node, &pending, rc, false);
}

bh_rc
bh_orders_perform(struct bh_orders *orders, struct bh_err *err)
{
    bh_rc rc = bh_state_sync(&orders->node->state, err);

    for (uint32_t i = 0; i < orders->count && rc == BH_OK; i++)
        perform(orders->node, &orders->pending[i]);
    orders->count = 0;
    return rc;
}

void
bh_orders_acknowledge(struct bh_orders *orders, uint64_t order)
{
    struct bh_note note = { .kind = BH_NOTE_FORGET_ORDER, .order = order };
    const struct bh_order *known = bh_state_order(&orders->node->state, order);
    struct bh_err err;

    if (known && known->done && bh_state_note(&orders->node->state, &note, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("order", order), BH_ERRLOG(&err));
}

void
bh_orders_repeat(struct bh_orders *orders)
{
    const struct bh_state *state = &orders->node->state;

    for (uint32_t i = 0; i < state->order_count; i++) {
        if (state->orders[i].done)
            bh_node_send(orders->node, BH_MSG_OUTCOME, &state->orders[i].outcome);
    }
}

bh_ns
bh_orders_tick(struct bh_orders *orders, bh_ns now)
{
    struct bh_err ignored;

    if (!bh_state_has_unsaved(&orders->node->state))
        return 0;
    if (orders->save_at > now)
        return orders->save_at;
    orders->save_at = now + SAVE_AGAIN;
    return bh_state_save(&orders->node->state, &ignored) == BH_OK ? 0 : orders->save_at;
}

/* ---- repairing ---- */

/* A start that was noted: did the job come to life?  Its keeper says so before anything
 * else. */
static bool
settle_start(struct bh_node *node, const struct bh_note *order)
{
    struct bh_note forget = { .kind = BH_NOTE_FORGET_LEASE, .lease = order->lease };
    char folder[BH_NODE_PATH_MAX], id[32];
    struct bh_msg_ended end;
    struct bh_err err;
    pid_t pid;

    bh_node_job_folder(node, order->lease, folder);
    if (bh_keeper_alive(folder, &pid) || bh_keeper_started(folder) != 0
        || bh_exit_record_read(folder, &end, &err) == BH_OK)
        return true;
    bh_node_job_id(order->lease, id);
    (void)!node->runtime.ops->destroy(node->runtime.self, id, &err);
    bh_path_remove_tree(folder);
    (void)!bh_state_note(&node->state, &forget, &err);
    return false;
}

static bool
settle_carve(struct bh_node *node, const struct bh_note *order)
{
    struct bh_err err;
    bool found = false;

    if (bh_state_piece(&node->state, order->piece.partition))
        return true;
    if (!order->begun || bh_piece_allowed(node, order->piece.gpu, &err) != BH_OK)
        return false;
    return bh_piece_adopt(node, order, &found, &err) == BH_OK && found;
}

static bool
settle_destroy(struct bh_node *node, const struct bh_note *order)
{
    return !bh_state_piece(&node->state, order->piece.partition);
}

/* The signal may have been sent: the stop is ordered again, and the end was asked for. */
static bool
settle_stop(struct bh_node *node, const struct bh_note *order)
{
    struct bh_note asked = { .kind = BH_NOTE_ASKED, .lease = order->lease };
    struct bh_err ignored;

    (void)!bh_state_note(&node->state, &asked, &ignored);
    return false;
}

/* Done only when its end was noted: a job that is just frozen is thawed when it is adopted. */
static bool
settle_suspend(struct bh_node *node, const struct bh_note *order)
{
    const struct bh_job *job = bh_state_job(&node->state, order->lease);

    return job && job->suspended;
}

/* What can be repeated without harm is left to the daemon to order again. */
static void
settle(struct bh_node *node, const struct bh_note *order)
{
    static bool (*const settlers[])(struct bh_node *, const struct bh_note *) = {
        [BH_MSG_CARVE] = settle_carve,
        [BH_MSG_DESTROY] = settle_destroy,
        [BH_MSG_START] = settle_start,
        [BH_MSG_SUSPEND] = settle_suspend,
        [BH_MSG_STOP] = settle_stop,
    };
    struct bh_note forget = { .kind = BH_NOTE_FORGET_ORDER, .order = order->order };
    struct pending pending = { .order = order->order };
    struct bh_err err;

    if (order->message < BH_COUNT(settlers) && settlers[order->message]
        && settlers[order->message](node, order))
        answer(node, &pending, OUTCOME_DONE, BH_OK, "");
    else
        (void)!bh_state_note(&node->state, &forget, &err);
}

void
bh_orders_repair(struct bh_orders *orders)
{
    struct bh_state *state = &orders->node->state;

    for (uint32_t i = 0; i < state->order_count;) {
        struct bh_note order = state->orders[i].note;

        if (!state->orders[i].done)
            settle(orders->node, &order);
        /* a forgotten one was replaced by the last: look at the same place again */
        if (i < state->order_count && state->orders[i].note.order == order.order)
            i++;
    }
}
