#ifndef BH_NODE_SESSION_EPOCH_H
#define BH_NODE_SESSION_EPOCH_H

#include "node/orders/order.h"

/* The epochs of the daemon's store (ADR 0060), as the last HELLO listed them, in the file `epochs`
 * of the state folder.
 *
 * A daemon whose store was put back from a backup gives out numbers that this node knows from
 * before, for other leases, orders and partitions.  It lists an epoch that this node has not heard
 * of; what was given out since the last that both know is then undone before anything is reported. */

/* Read the file, at the start; none is as well.
 *   BH_INVALID  it is no file, or damaged: what it says of lost numbers must not be guessed */
BH_MUST_USE bh_rc bh_node_epochs_open(struct bh_node *node, struct bh_err *err);

/* After HELLO, before anything is sent.  Leases and partitions of another epoch are ended and destroyed, and
 * their orders and receipts forgotten; the GPU memory of a node that took an order since then gets an unknown
 * tenant.
 *   BH_IO, BH_FULL  the journal or the file cannot be written: nothing may be reported */
BH_MUST_USE bh_rc bh_node_epochs_receive(struct bh_node *node, struct bh_orders *orders,
                                         const struct bh_msg_hello *hello, struct bh_err *err);

#endif
