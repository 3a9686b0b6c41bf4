#ifndef BH_NODE_ORDERS_ORDER_RECOVERY_H
#define BH_NODE_ORDERS_ORDER_RECOVERY_H

#include "node/core/node.h"

/* After a crash: the outcome of an order that was noted and has none. */

/* Whether the order's effect is there, so that it was done.  If not, half-made effects are undone, and the
 * caller forgets the order, which the daemon gives again.  So it is with a reset and a scrub: their programs
 * are ended, or end by themselves. */
bool bh_order_recovery_is_done(struct bh_node *node, const struct bh_node_record *order);

#endif
