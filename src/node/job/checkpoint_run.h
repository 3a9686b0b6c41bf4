#ifndef BH_NODE_JOB_CHECKPOINT_RUN_H
#define BH_NODE_JOB_CHECKPOINT_RUN_H

#include "checkpoint/report.h"
#include "node/core/node.h"

/* One run of bulkhead-checkpoint.  It confines itself (checkpoint/sandbox.h), ends with the node, and
 * is killed at its deadline.  No call waits for it. */
struct bh_checkpoint_run {
    pid_t pid; /* until it has gone; 0: none */
    int output_fd;
    bool killed;
    bh_ns until; /* monotonic */
    uint32_t allowed_ms;
};

/* Begin, for a job whose processes job->checkpointed_pids names; `job` NULL: PROBE.  `allowed_ms` is all
 * the time that it gets.
 *   BH_IO, BH_INVALID  it cannot be started, or job_driver_mount of node.conf cannot be read */
BH_MUST_USE bh_rc bh_checkpoint_run_begin(const struct bh_node *node, const struct bh_job *job,
                                          enum bh_checkpoint_action action, struct bh_checkpoint_run *run,
                                          struct bh_err *err);

/* Look at it.  False: it is not over; `ret_next` is when to look again.  True: it is, and the
 * code in `ret_err` is
 *   BH_OK        it answered: `ret_report`
 *   BH_TIMEOUT   it took too long and was killed; run->pid stays where it does not go even then
 *   BH_IO        it died, or said nothing that can be read */
bool bh_checkpoint_run_advance(struct bh_checkpoint_run *run, bh_ns now, bh_ns *ret_next,
                               struct bh_checkpoint_report *ret_report, struct bh_err *ret_err);

/* Whether one that was killed still has not gone. */
bool bh_checkpoint_run_is_stuck(struct bh_checkpoint_run *run);

#endif
