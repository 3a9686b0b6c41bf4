#ifndef BH_NODE_JOB_ORDER_ANSWER_H
#define BH_NODE_JOB_ORDER_ANSWER_H

#include "node/core/node.h"

/* Answers to orders: recorded, then sent to the daemon. */

enum bh_order_outcome { BH_ORDER_DONE, BH_ORDER_FAILED, BH_ORDER_HELD, BH_ORDER_UNCLEAN };

struct bh_order_pending {
    uint32_t number;
    uint64_t order;
    const void *message;
    bh_rc refused; /* not BH_OK: answer with `err` and begin nothing */
    bool waits;    /* a start before which a partition is scrubbed */
    struct bh_err err;
};

/* How often the ownership map has changed, where that was not reported on this connection. */
void bh_order_send_marks(struct bh_node *node);

/* Send what became of an order that is done. */
void bh_order_send_outcome(struct bh_node *node, const struct bh_order *order);

/* Note the outcome and send it.  What cannot be noted is kept for later, and sent. */
void bh_order_answer(struct bh_node *node, uint64_t number, enum bh_order_outcome outcome, bh_rc rc,
                     const char *why);

/* By what performing it came to.  A start that came out well is answered by bh_order_answer_start. */
void bh_order_answer_with(struct bh_node *node, const struct bh_order_pending *pending, bh_rc rc, bool held);

/* The inspection of a job is over, or its end came first: answer its START, where that waits.
 * With job->failed_check, a check failed. */
void bh_order_answer_start(struct bh_node *node, struct bh_job *job);

#endif
