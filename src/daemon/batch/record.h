#ifndef BH_DAEMON_BATCH_RECORD_H
#define BH_DAEMON_BATCH_RECORD_H

#include "daemon/state/core.h"
#include "daemon/state/entry.h"

/* Put a record without an engine event (a denial, a token) into the batch.  A refusal like one
 * before is counted instead (daemon/state/refusals.h).  A record of BH_DENIED or BH_UNAUTHENTICATED never
 * says that it was allowed: a rule that `entry` says allowed it is left out. */
BH_MUST_USE bh_rc bh_core_record(struct bh_core *core, const struct bh_entry *entry, bh_rc res,
                                 struct bh_err *err);

/* The same for as many equal ones. */
BH_MUST_USE bh_rc bh_core_record_times(struct bh_core *core, const struct bh_entry *entry, bh_rc res,
                                       uint64_t times, struct bh_err *err);

/* Record the refusals that were counted in windows that are over; `all`: in all windows. */
BH_MUST_USE bh_rc bh_core_record_refusals(struct bh_core *core, bool all, struct bh_err *err);

#endif
