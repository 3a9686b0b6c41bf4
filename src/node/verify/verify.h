#ifndef BH_NODE_VERIFY_VERIFY_H
#define BH_NODE_VERIFY_VERIFY_H

#include "node/core/node.h"

/* Whether jobs are isolated on this machine: tested by bulkhead-probe, in a sandbox made by the same code as
 * every job's and inspected from outside in the same way.
 *
 * A check runs when the node starts, before any daemon may connect; when the driver has changed; after one in
 * verify_sample starts of jobs; and when the daemon asks.  One check runs at a time, beside the jobs; those
 * requested meanwhile wait.  When one fails, no GPU takes a new lease until a requested check passes; each
 * lease that runs is checked separately (node/verify/lease_check.h), and ends only by its own checks.  A
 * check that is inconclusive is repeated without a request (node/verify/verify_retry.h), and closes the GPUs
 * only where none has passed yet with this driver. node/sandbox/evidence.h has the rules. */

BH_MUST_USE struct bh_verify *bh_verify_new(void);
void bh_verify_free(struct bh_verify *verify); /* NULL is fine */

/* At the start of the node: try now, and return when it is over. */
void bh_verify_begin(struct bh_node *node);

/* The daemon asks.  It hears BH_MSG_VERDICT; about a lease that is behind its start barrier when
 * that is over (start_barrier.h: 30 s at most), so also when this node has just been started. */
void bh_verify_request(struct bh_node *node, const struct bh_msg_verify *asked);

/* The daemon is there: say what it has not heard. */
void bh_verify_connected(struct bh_node *node);

/* A job's command began: every so often, check the node. */
void bh_verify_started(struct bh_node *node);

/* The GPUs were read anew: try when the driver is another. */
void bh_verify_scanned(struct bh_node *node);

/* Do what is due; the monotonic time of the next thing that is, or 0. */
bh_ns bh_verify_tick(struct bh_node *node, bh_ns now);

#endif
