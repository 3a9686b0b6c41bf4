#ifndef BH_DAEMON_BATCH_APPEND_H
#define BH_DAEMON_BATCH_APPEND_H

#include "daemon/state/core.h"
#include "daemon/state/entry.h"

/* Put `record`, completed by what `entry` says, into the batch's journal: names that wait are bound
 * with it or before it, and the note is sealed into it.
 *   BH_RANGE  the note takes more items than a record bears; failures of the store */
BH_MUST_USE bh_rc bh_core_append(struct bh_core *core, const struct bh_entry *entry, struct bh_record *record,
                                 struct bh_err *err);

#endif
