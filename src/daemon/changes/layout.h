#ifndef BH_DAEMON_CHANGES_LAYOUT_H
#define BH_DAEMON_CHANGES_LAYOUT_H

#include "daemon/state/core.h"

/* LAYOUT_APPLY and LAYOUT_ROLLBACK, as bh_dispatch_run: one event for each GPU, all with the
 * number of one change, and all in one batch.
 *   BH_CONFLICT  a rollback where nothing is left of the last change, or it was taken back */
BH_MUST_USE bh_rc bh_layout_run(struct bh_core *core, const struct bh_command *command,
                                struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

#endif
