#ifndef BH_NODE_JOB_CHECKPOINT_H
#define BH_NODE_JOB_CHECKPOINT_H

#include "node/core/node.h"

/* Suspending jobs that hold memory on a GPU (docs/shares.md, ADR 0042).
 *
 * The driver's checkpoint calls save the processes of such a job that the driver lists, all or none, while
 * they still run; then the job is frozen and the driver's list is read, as for any other job.  To resume, the
 * job is thawed, and its processes get their memory back before they may use it. bulkhead-checkpoint makes
 * the calls, beside the node's loop: an order that needs one waits, and asks again.
 *
 * The processes that may be saved are noted before the first call and until the last: after a crash an
 * interrupted save is undone, unless the job is suspended. */

BH_MUST_USE struct bh_checkpoint_runs *bh_checkpoints_new(void);
void bh_checkpoints_free(struct bh_checkpoint_runs *checkpoints); /* NULL is fine; ends its helpers */

/* At the node's start: whether the driver's library has the calls.  Waits for some milliseconds,
 * five seconds where the helper hangs. */
void bh_checkpoint_probe(struct bh_node *node);

/* "yes", or why a job that holds GPU memory cannot be suspended on this node. */
void bh_checkpoint_describe(const struct bh_node *node, char *ret_text, size_t size);

/* Suspend a job, as bh_job_suspend.  BH_OK and `ret_waits`: there is no answer yet.  BH_OK and
 * `ret_held`: it runs on as it did, or was left bad by the driver; the message of `err` says why. */
BH_MUST_USE bh_rc bh_checkpoint_suspend(struct bh_node *node, const struct bh_msg_lease *order,
                                        bool *ret_held, bool *ret_waits, struct bh_err *err);

/* Resume a job, as bh_job_resume.  Where its memory cannot be given back the job is ended, with the
 * cause BH_END_RESUME_FAILED, and the result is BH_IO or BH_TIMEOUT. */
BH_MUST_USE bh_rc bh_checkpoint_resume(struct bh_node *node, const struct bh_msg_lease *order,
                                       bool *ret_waits, struct bh_err *err);

/* Look at all helpers; the monotonic time of the next look, or 0. */
bh_ns bh_checkpoints_tick(struct bh_node *node, bh_ns now);

/* Whether a helper runs for that order. */
bool bh_checkpoint_runs(const struct bh_node *node, uint64_t order);

/* After a start of the node: give back the saved memory of a job that is not suspended and got no signal to
 * end. */
void bh_checkpoint_adopt(struct bh_node *node, struct bh_job *job);

#endif
