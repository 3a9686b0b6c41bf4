#ifndef BH_DAEMON_OWNER_DISPATCH_H
#define BH_DAEMON_OWNER_DISPATCH_H

#include "daemon/state/core.h"

/* Carry out one command of the API inside the core's batch: authorise, step, record.
 *
 * `ret_answer` may be given to the caller only after the batch is committed.  A denial
 * and a refusal are recorded as well.  BH_IO and BH_FULL mean that the batch must be
 * aborted; everything else leaves it whole. */
BH_MUST_USE bh_rc bh_dispatch_run(struct bh_core *core, const struct bh_command *command,
                                  struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

#endif
