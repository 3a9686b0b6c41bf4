#ifndef BH_DAEMON_CHANGES_SUBMIT_H
#define BH_DAEMON_CHANGES_SUBMIT_H

#include "daemon/state/core.h"

/* JOB_SUBMIT: names to ids, permissions, policies, then the engine.  As bh_dispatch_run.  What the
 * job may mount was checked by the API. */
BH_MUST_USE bh_rc bh_submit_run(struct bh_core *core, const struct bh_command *command,
                                struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

#endif
