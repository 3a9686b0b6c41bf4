#ifndef BH_NODE_ORDERS_ORDER_WATERMARK_H
#define BH_NODE_ORDERS_ORDER_WATERMARK_H

#include "node/core/node.h"

/* The highest order that this node took, which a backup of the state folder must not take back.  It is in the
 * file `reached` of run_dir, which a restart of the machine empties.
 *
 * The journal says whose bytes lie in which GPU memory.  A journal that was restored from a backup says it of
 * an earlier time, and a tenant would get memory of another unscrubbed.  So the journal is believed only
 * where it is as recent as the watermark, in the same epoch (a random number, drawn anew whenever memory is
 * disowned), and since the machine started.  Otherwise the memory's tenants are unknown, and it is scrubbed
 * before it is used.
 *
 * The daemon has a second watermark, in case run_dir was restored with the state folder: the node reports
 * how often its ownership map has changed, and receives at each connection the highest number that it
 * reported. */

/* At the start, the journal having been read; disowns memory where that is so.
 *   BH_IO, BH_FULL  the journal or the watermark cannot be written: nothing may be started */
BH_MUST_USE bh_rc bh_order_watermark_open(struct bh_node *node, struct bh_err *err);

/* After notes of orders are durable, before one is begun.  BH_IO. */
BH_MUST_USE bh_rc bh_order_watermark_write(struct bh_node *node, struct bh_err *err);

/* Before any order of a connection: the most that was reported to the daemon.  A node that knows of fewer
 * changes was put back, and disowns memory as above.  BH_IO, BH_FULL: no order may be taken. */
BH_MUST_USE bh_rc bh_order_watermark_compare(struct bh_node *node, uint64_t reported, struct bh_err *err);

void bh_order_watermark_close(struct bh_node *node);

#endif
