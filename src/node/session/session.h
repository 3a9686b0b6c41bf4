#ifndef BH_NODE_SESSION_SESSION_H
#define BH_NODE_SESSION_SESSION_H

#include "node/core/node.h"
#include "node/orders/order.h"

/* The daemon's connection: one at a time, a new one takes the place of the old.  Which
 * messages are taken depends on what was said before; anything else closes it. */

/* A connection waits at the listener. */
void bh_session_accept(struct bh_node *node);

/* The connection is readable: take and perform the orders that came. */
void bh_session_read_frame(struct bh_node *node, struct bh_orders *orders);

/* Destroy partitions that the daemon did not name in KEEP, as soon as their jobs are gone. */
void bh_session_collect(struct bh_node *node);

#endif
