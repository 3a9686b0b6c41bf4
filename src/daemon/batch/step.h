#ifndef BH_DAEMON_BATCH_STEP_H
#define BH_DAEMON_BATCH_STEP_H

#include "daemon/state/core.h"
#include "daemon/state/entry.h"

/* Step the engine and put the record, with its decisions, and the rows it changes
 * into the batch.  A refused event changes nothing and is not recorded here;
 * `core->step.verdict` says why.  After BH_IO and BH_FULL the batch must be aborted. */
BH_MUST_USE bh_rc bh_core_step(struct bh_core *core, const struct bh_entry *entry, struct bh_event *event,
                               struct bh_err *err);

#endif
