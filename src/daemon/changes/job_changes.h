#ifndef BH_DAEMON_CHANGES_JOB_CHANGES_H
#define BH_DAEMON_CHANGES_JOB_CHANGES_H

#include "daemon/state/core.h"

/* JOB_CANCEL and JOB_RELEASE, as bh_dispatch_run: one's own jobs, or all with job.cancel.any.
 * A denial does not say what state the job is in. */
BH_MUST_USE bh_rc bh_job_changes_run(struct bh_core *core, const struct bh_command *command,
                                     struct bh_arena *arena, struct bh_answer *ret_answer,
                                     struct bh_err *err);

/* DEFRAG_APPLY, the same: a plan of moves over the whole site; the engine says whether it still
 * fits. */
BH_MUST_USE bh_rc bh_job_changes_move(struct bh_core *core, const struct bh_command *command,
                                      struct bh_arena *arena, struct bh_answer *ret_answer,
                                      struct bh_err *err);

#endif
