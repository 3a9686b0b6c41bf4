#ifndef BH_DAEMON_OWNER_START_H
#define BH_DAEMON_OWNER_START_H

#include "daemon/state/core.h"

/* Record the start: it keeps the boot count, times of rest can be seen, and what was under way when the
 * daemon ended is given up.  What nodes did meanwhile they say themselves.  On a full disk, and during a
 * pause after failed asserts (daemon/state/quarantine.h), it is due (core->start_due) and the core as it was
 * opened: reads are served, and the owner records the start before anything else is written and before a node
 * is connected.  BH_OK then, too; failures of the store. */
BH_MUST_USE bh_rc bh_start_record(struct bh_core *core, struct bh_err *err);

/* Record it now, if it is due, in the open transaction or a new one, and commit.  BH_FULL: there is
 * still no room; failures of the store.  The caller aborts then. */
BH_MUST_USE bh_rc bh_start_settle(struct bh_core *core, struct bh_err *err);

#endif
