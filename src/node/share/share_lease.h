#ifndef BH_NODE_SHARE_SHARE_LEASE_H
#define BH_NODE_SHARE_SHARE_LEASE_H

#include "node/core/node.h"

/* Leases with shares of GPUs, as bulkhead-share keeps them: pages and a door for each, in
 * <run_dir>/shares/LEASE, from before its sandbox stands until its job has ended.  A suspended
 * job keeps them: its processes still have them mapped. */

/* Where they stand in the sandbox: include/bulkhead/share_socket.h. */
#define BH_NODE_SHARE_SOCKET_DIR "/run/bulkhead"

/* Whether the job was lent shares that it must be held to: not a sandbox of the node's own. */
bool bh_node_share_is(const struct bh_job *job);

/* Make its pages and its door.  Nothing for a job without shares.
 *   BH_UNAVAILABLE  a share cannot be enforced here: no shim, no driver libraries, or
 *                   bulkhead-share does not answer; the message says which
 *   others as bh_share_host_open */
BH_MUST_USE bh_rc bh_node_share_open(struct bh_node *node, const struct bh_job *job, struct bh_err *err);

/* The lease's processes are frozen, or about to be: it gives up the time slices of its GPUs, and its answer
 * is not waited for.  After a resume it takes part again.  Does nothing for a lease without shares; either
 * call may be repeated.  A node or a bulkhead-share that restarts keeps to it. */
void bh_node_share_pause(struct bh_node *node, uint64_t lease);
void bh_node_share_resume(struct bh_node *node, uint64_t lease);

/* The folder that is bound at BH_NODE_SHARE_SOCKET_DIR. */
void bh_node_share_socket_dir(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX]);

/* When the next turn is due, monotonic; 0: nothing is shared. */
bh_ns bh_node_shares_next(const struct bh_node *node);

/* End bulkhead-share; pages and doors stay for the next one. */
void bh_node_shares_free(struct bh_node *node);

#endif
