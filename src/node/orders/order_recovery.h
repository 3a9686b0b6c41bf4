#ifndef BH_NODE_ORDERS_ORDER_RECOVERY_H
#define BH_NODE_ORDERS_ORDER_RECOVERY_H

#include "node/core/node.h"

/* After a crash: what became of an order that was noted and has no outcome. */

/* Whether the order's effect stands, so that it was done.  If not, what was half made is undone,
 * and the order is forgotten by the caller: the daemon gives it again.  A reset and a scrub are
 * such; what ran for them is ended, or ends by itself. */
bool bh_order_recovery_is_done(struct bh_node *node, const struct bh_node_record *order);

#endif
