#ifndef BH_NODE_JOB_JOB_H
#define BH_NODE_JOB_JOB_H

#include "node/core/node.h"

/* Jobs on this node, from START to ENDED.
 *
 * An order's effect is idempotent as far as possible, and its outcome can be read again after a crash: a job
 * runs when its keeper holds the lock of its folder, and has ended when its exit record is there. */

/* Start the job of a lease that was noted.  On failure nothing of it is left. */
BH_MUST_USE bh_rc bh_job_start(struct bh_node *node, const struct bh_msg_start *start, struct bh_err *err);

/* Freeze the job unless it keeps the GPU: `ret_held` and a thawed job then. */
BH_MUST_USE bh_rc bh_job_suspend(struct bh_node *node, uint64_t lease, bool *ret_held, struct bh_err *err);

/* Thaw it, when its partitions are on the device nodes they were lent with: else BH_CONFLICT.  `ret_waits`:
 * not yet, memory is scrubbed first, as bh_scrub_prepare. */
BH_MUST_USE bh_rc bh_job_resume(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_waits,
                                struct bh_err *err);

/* The signal (SIGTERM when it says none) now, SIGKILL after the grace; without a grace at
 * once.  BH_OK when it has ended already.  The end of a lease that is not known here is
 * reported, too (BH_END_START_FAILED).
 *   BH_RANGE  not the number of a signal */
BH_MUST_USE bh_rc bh_job_stop(struct bh_node *node, const struct bh_msg_stop *stop, struct bh_err *err);

/* The keeper's descriptor became readable, or check_at passed: see what became of it, and
 * report the end once it is one. */
void bh_job_check(struct bh_node *node, struct bh_job *job);

/* The daemon has the end on disk, or no longer knows the lease. */
void bh_job_forget(struct bh_node *node, uint64_t lease);

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
BH_MUST_USE bh_rc bh_job_gpu_use(struct bh_node *node, const struct bh_job *job, bool *ret_used,
                                 uint64_t *ret_mib, struct bh_err *err);

/* A START that cannot be: its lease is forgotten, and the job's output says why. */
void bh_job_give_up(struct bh_node *node, const struct bh_msg_start *start, const struct bh_err *why);

/* Send the signals that are due: SIGKILL, or the one that it ends by. */
void bh_job_stop_due(struct bh_node *node, struct bh_job *job, bh_ns now);

/* A keeper was started, or found again: look when process 1 waits. */
void bh_job_set_barrier(struct bh_job *job);

/* Check its isolation soon, because a check of the node failed. */
void bh_job_recheck_soon(struct bh_job *job);

/* Found again after a start of the node: thaw it, if it is not noted as suspended. */
void bh_job_adopt_frozen(struct bh_node *node, struct bh_job *job);

/* Report the end of a job that has ended, with how long ago that was. */
void bh_job_report_end(struct bh_node *node, const struct bh_job *job);

/* Report the jobs on that GPU that have ended and were not checked yet.  Called before a report
 * that ends what runs there: an end that is on disk is the job's own.  Forgets none. */
void bh_job_check_gpu(struct bh_node *node, const char *gpu);

#endif
