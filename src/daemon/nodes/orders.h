#ifndef BH_DAEMON_NODES_ORDERS_H
#define BH_DAEMON_NODES_ORDERS_H

#include "daemon/state/core.h"
#include "wire/message.h"

/* Effects of the engine as orders to the node, and the node's answers as events. */

/* A message with its number in tables/messages.tbl. */
struct bh_order_message {
    uint32_t number;
    const void *message;
};

/* The message that carries `effect`, in `arena`.  START reads the job's specification
 * from the store.  BH_NOT_FOUND: what it names is gone; BH_DENIED: a dataset of the job, whose end
 * then follows. */
BH_MUST_USE bh_rc bh_orders_message(struct bh_core *core, const struct bh_effect *effect,
                                    struct bh_arena *arena, struct bh_order_message *ret_order,
                                    struct bh_err *err);

/* The node's order of that number that the engine still waits for; false when nothing
 * does.  Looks at everything outstanding: for answers to orders of an earlier connection. */
bool bh_orders_find(const struct bh_core *core, bh_node_id node, uint64_t order,
                    struct bh_effect *ret_effect);

/* Step the engine with the outcome of `effect`; one that the engine does not wait for any
 * more is ignored. */
BH_MUST_USE bh_rc bh_orders_outcome(struct bh_core *core, const struct bh_effect *effect,
                                    const struct bh_msg_outcome *outcome, struct bh_err *err);

/* Step the engine with a lease's end, as its node says; one that is known already, or is of
 * another node's lease, is ignored. */
BH_MUST_USE bh_rc bh_orders_ended(struct bh_core *core, bh_node_id node, const struct bh_msg_ended *ended,
                                  struct bh_err *err);

/* After a start: a record for each order that is not answered, of which it is unknown what has
 * become of it.  They are sent again when the node says hello, and their outcomes follow. */
BH_MUST_USE bh_rc bh_orders_unknown(struct bh_core *core, struct bh_err *err);

#endif
