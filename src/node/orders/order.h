#ifndef BH_NODE_ORDERS_ORDER_H
#define BH_NODE_ORDERS_ORDER_H

#include "node/core/node.h"

/* Orders from the daemon: noted before they are begun, answered from the journal when
 * they come again, repaired after a crash in the middle.
 *
 * Orders that arrive together are noted together: take each, then perform all. */
struct bh_orders;

enum { BH_ORDERS_BATCH_MAX = 256 };

BH_MUST_USE struct bh_orders *bh_orders_new(struct bh_node *node);
void bh_orders_free(struct bh_orders *orders);
BH_AUTO_DEFINE(struct bh_orders *, bh_orders_free)

/* Note an order (message number and its struct, texts valid until performed).  An order
 * that was taken before is answered with its outcome.  BH_FULL: perform first. */
BH_MUST_USE bh_rc bh_orders_accept(struct bh_orders *orders, uint32_t number, const void *message,
                                   struct bh_err *err);

/* Where there are orders: make the notes durable, perform the orders and send their outcomes; those of what
 * runs beside the loop (scrubs, resets, images) follow when it has ended.  When the disk does not take the
 * notes nothing was begun. */
BH_MUST_USE bh_rc bh_orders_perform(struct bh_orders *orders, struct bh_err *err);

/* Continue orders that waited for others, for a scrub or a reset, or for the driver (destroy_wait_ms in
 * node.conf), note the outcomes for which the disk had no room, and sync within a second the records that no
 * order waits for.  Returns the monotonic time of the next try, or 0. */
bh_ns bh_orders_tick(struct bh_orders *orders, bh_ns now);

/* The daemon has the outcome. */
void bh_orders_acknowledge(struct bh_orders *orders, uint64_t order);

/* Forget all orders from that number on: they are of another epoch (node/session/epoch.h). */
void bh_orders_drop(struct bh_orders *orders, uint64_t from);

/* Send every outcome again that was not acknowledged. */
void bh_orders_repeat(struct bh_orders *orders);

/* After a start, before jobs are adopted: settle the orders that a crash interrupted. */
void bh_orders_repair(struct bh_orders *orders);

#endif
