#ifndef BH_NODE_VERIFY_H
#define BH_NODE_VERIFY_H

#include "node/node.h"

/* Whether the walls between jobs hold on this machine: tried by bulkhead-probe, in a sandbox made
 * by the same code as every job's and looked at from outside like them.
 *
 * It is tried when the node starts, before anybody may connect; when the driver has changed; after
 * one in verify_sample starts of jobs; and when the daemon asks.  One try runs at a time, beside
 * the jobs; those asked for meanwhile wait.  When a wall does not hold, all GPUs are fenced and no
 * job is started until a try that was asked for holds.  A wall of one lease that does not stand
 * fences the GPUs of that lease as long.  A try without an answer is no finding: it is made again
 * without being asked for (node/again.h), and fences only where none has held yet with this
 * driver. */

BH_MUST_USE struct bh_verify *bh_verify_new(void);
void bh_verify_free(struct bh_verify *verify); /* NULL is fine */

/* At the start of the node: try now, and return when it is over. */
void bh_verify_begin(struct bh_node *node);

/* The daemon asks.  It hears BH_MSG_VERDICT. */
void bh_verify_ask(struct bh_node *node, const struct bh_msg_verify *asked);

/* The daemon is there: say what it has not heard. */
void bh_verify_greet(struct bh_node *node);

/* A job was let go: every so often, try. */
void bh_verify_started(struct bh_node *node);

/* The GPUs were read anew: try when the driver is another. */
void bh_verify_scanned(struct bh_node *node);

/* Do what is due; the monotonic time of the next thing that is, or 0. */
bh_ns bh_verify_tick(struct bh_node *node, bh_ns now);

/* BH_UNAVAILABLE: a wall did not hold here, or on a GPU of one of the pieces. */
BH_MUST_USE bh_rc bh_verify_check_start(const struct bh_node *node,
                                        const struct bh_msg_start *start, struct bh_err *err);

/* A wall of that lease does not stand (BH_WALLS_BROKEN): its GPUs are fenced.  It could not be
 * looked at in time (BH_WALLS_UNFINISHED): the node's own walls are tried again. */
void bh_verify_fence_lease(struct bh_node *node, const struct bh_job *job, enum bh_walls walls,
                           const char *why);

/* How it stands. */
void bh_verify_walls(const struct bh_node *node, struct bh_msg_walls *ret_walls);

bool bh_verify_is_fenced(const struct bh_node *node, const char *gpu);

#endif
