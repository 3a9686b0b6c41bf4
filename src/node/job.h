#ifndef BH_NODE_JOB_H
#define BH_NODE_JOB_H

#include "node/node.h"

/* Jobs on this node, from START to ENDED.
 *
 * An order's effect is idempotent as far as it can be, and its truth can be read again
 * after a crash: a job runs when its keeper holds the lock of its folder, and has ended
 * when its exit record stands there. */

/* Start the job of a lease that was noted.  On failure nothing of it is left. */
BH_MUST_USE bh_rc bh_job_start(struct bh_node *node, const struct bh_msg_start *start,
                               struct bh_err *err);

/* Freeze the job unless it keeps the GPU: `ret_held` and a thawed job then. */
BH_MUST_USE bh_rc bh_job_suspend(struct bh_node *node, uint64_t lease, bool *ret_held,
                                 struct bh_err *err);

/* Thaw it, when its partitions stand on the device nodes they were lent with: else BH_CONFLICT.
 * `ret_waits`: not yet, memory is scrubbed first, as bh_scrub_prepare. */
BH_MUST_USE bh_rc bh_job_resume(struct bh_node *node, const struct bh_msg_lease *order,
                                bool *ret_waits, struct bh_err *err);

/* The signal (SIGTERM when it says none) now, SIGKILL after the grace; without a grace at
 * once.  BH_OK when it has ended already.  The end of a lease that is not known here is
 * reported, too (BH_END_START_FAILED).
 *   BH_RANGE  not the number of a signal */
BH_MUST_USE bh_rc bh_job_stop(struct bh_node *node, const struct bh_msg_stop *stop,
                              struct bh_err *err);

/* The keeper's descriptor became readable, or check_at passed: see what became of it, and
 * report the end once it is one. */
void bh_job_check(struct bh_node *node, struct bh_job *job);

/* Do what is due; the monotonic time of the next thing that is, or 0. */
bh_ns bh_job_tick(struct bh_node *node, bh_ns now);

/* After a start of the node: find the keepers again, end what has none. */
void bh_job_adopt_all(struct bh_node *node);

/* The daemon has the end on disk, or does not know the lease any more. */
void bh_job_forget(struct bh_node *node, uint64_t lease);

/* BH_CONFLICT: another job holds the place of a partition that the lease was lent, it is being
 * scrubbed, or its GPU is being reset. */
BH_MUST_USE bh_rc bh_job_check_placements(const struct bh_node *node, const struct bh_node_record *lease,
                                      struct bh_err *err);

/* Its processes that have a context on one of its partitions, and what they hold; `count` may be more
 * than there is room for. */
struct bh_job_on_gpu {
    struct bh_checkpoint_pid pids[BH_CHECKPOINT_PIDS_MAX];
    uint32_t count;
    uint64_t memory_mib;
};
BH_MUST_USE bh_rc bh_job_gpu_list(struct bh_node *node, const struct bh_job *job,
                                  struct bh_job_on_gpu *ret_on_gpu, struct bh_err *err);

/* Whether any process of the job has a context on one of its partitions, and how much GPU
 * memory its processes hold. */
BH_MUST_USE bh_rc bh_job_gpu_use(struct bh_node *node, const struct bh_job *job,
                                 bool *ret_used, uint64_t *ret_mib, struct bh_err *err);

#endif
