#ifndef BH_NODE_SANDBOX_LAUNCH_H
#define BH_NODE_SANDBOX_LAUNCH_H

#include "node/core/node.h"

/* How every sandbox on this node is started: a job's, a scrub's helper, a probe.  One path, so
 * that what is true of one of them is true of all: checked against node.conf, described, built by
 * the runtime under a keeper, its process 1 waiting until it was inspected (verify/start_barrier.h). */

struct bh_launch {
    const struct bh_msg_start *start;        /* what is to run; the partitions are the job's */
    struct bh_job *job;                      /* its note says lease, range of user ids and partitions */
    int log_fd;                              /* gets its output; stays the caller's */
    uint64_t log_cap_bytes, log_bound_bytes; /* of its log, of all its tenant's; bound 0: none */
};

/* The folder of that lease, made when it is not there. */
BH_MUST_USE bh_rc bh_launch_folder(const struct bh_node *node, uint64_t lease,
                                   char ret_path[BH_NODE_PATH_MAX], struct bh_err *err);

/* Start it; its folder is there.  job->pidfd is the keeper's (-1: it has no descriptor) and
 * job->ordered the limits that it was given.  A line about how it was built goes to the log.
 *   BH_DENIED, BH_INVALID, BH_RANGE  what node.conf does not allow; the hint says the fix
 *   BH_CONFLICT                      a keeper holds the folder
 *   BH_IO, BH_FULL, BH_UNAVAILABLE   this machine is in the way
 * What was made by then is removed by bh_launch_clear. */
BH_MUST_USE bh_rc bh_launch(struct bh_node *node, const struct bh_launch *launch, struct bh_err *err);

/* Remove all that a launch made: processes (waited for two seconds at most), network, bundle, folder.  Does
 * nothing if nothing was made.  False: a process does not end, and all is left as it is, so that nothing else
 * takes its place. */
bool bh_launch_clear(struct bh_node *node, uint64_t lease);

#endif
