#include "node/job/order_answer.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/utf8.h"
#include "node/core/state_check.h"

void
bh_order_send_marks(struct bh_node *node)
{
    const struct bh_msg_marks marks = { .changes = node->state.changes };

    bh_node_assert(node);
    if (node->reported_changes == marks.changes)
        return;
    bh_node_send(node, BH_MSG_MARKS, &marks);
    node->reported_changes = marks.changes;
}

void
bh_order_send_outcome(struct bh_node *node, const struct bh_order *order)
{
    struct bh_msg_outcome outcome = order->outcome;
    bh_ns now = bh_time_now();

    bh_state_assert_order(&node->state, order);
    BH_ASSERT(order->done && order->outcome.outcome <= BH_ORDER_UNCLEAN);
    outcome.late_ns = now > outcome.at_ns ? now - outcome.at_ns : 0;
    bh_order_send_marks(node);
    bh_node_send(node, BH_MSG_OUTCOME, &outcome);
}

void
bh_order_answer(struct bh_node *node, uint64_t number, enum bh_order_outcome outcome, bh_rc rc,
                const char *why)
{
    struct bh_node_record record = {
        .kind = BH_NODE_RECORD_OUTCOME, .order = number, .outcome = outcome, .rc = rc, .at_ns = bh_time_now()
    };
    const struct bh_order *order = bh_state_order(&node->state, number);
    struct bh_err err;

    BH_ASSERT(number != 0 && (!order || !order->done)); /* an order has one outcome */
    BH_ASSERT(outcome <= BH_ORDER_UNCLEAN);
    snprintf(record.why, sizeof record.why, "%s", why);
    bh_utf8_scrub(record.why);
    if (bh_state_record(&node->state, &record, &err) != BH_OK) {
        bh_log(EFFECT_FAILED, BH_U64("order", number), BH_ERRLOG(&err));
        bh_state_remember(&node->state, &record);
    }
    order = bh_state_order(&node->state, number);
    if (order && order->done)
        bh_order_send_outcome(node, order);
}

void
bh_order_answer_with(struct bh_node *node, const struct bh_order_pending *pending, bh_rc rc, bool held)
{
    char why[420] = "";

    BH_ASSERT(pending->order != 0 && pending->number != 0);
    if (rc != BH_OK) {
        snprintf(why, sizeof why, "%s%s%s", pending->err.msg, *pending->err.hint ? "; " : "",
                 pending->err.hint);
        bh_log(EFFECT_FAILED, BH_U64("order", pending->order),
               BH_STR("kind", bh_message_name(pending->number)), BH_STR("why", why));
    }
    if (rc == BH_OK && pending->number == BH_MSG_START) {
        const struct bh_msg_start *start = pending->message;
        struct bh_job *job = bh_state_job(&node->state, start->lease);

        BH_ASSERT(job && !job->ended && !job->start_order);
        job->start_order = pending->order;
        job->unbuilt = true;
        return; /* answered when it was inspected */
    }
    if (rc != BH_OK)
        bh_order_answer(node, pending->order, held ? BH_ORDER_UNCLEAN : BH_ORDER_FAILED, rc, why);
    else
        bh_order_answer(node, pending->order, held ? BH_ORDER_HELD : BH_ORDER_DONE, rc,
                        held ? pending->err.msg : why);
}

void
bh_order_answer_start(struct bh_node *node, struct bh_job *job)
{
    uint64_t order = job->start_order;

    BH_STATE_ASSERT_TEXT(job->failed_check);
    bh_state_assert_lease(&job->record);
    job->start_order = 0;
    if (order)
        bh_order_answer(node, order, *job->failed_check ? BH_ORDER_FAILED : BH_ORDER_DONE,
                        *job->failed_check ? BH_UNAVAILABLE : BH_OK, job->failed_check);
}
