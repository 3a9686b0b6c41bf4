#ifndef BH_DAEMON_OWNER_CRASH_H
#define BH_DAEMON_OWNER_CRASH_H

#include "daemon/state/core.h"

/* What a failed assert leaves in the folder crash/ of the state folder: a file "assert-NN.json" (struct
 * bh_crash), and of a failure in the owner thread the engine's block as it was, "assert-NN.block".  At most
 * BH_CRASHES_MAX and BH_CRASH_BLOCKS_MAX of them, readable by the daemon's user alone. */

/* Read what earlier failures left into core->quarantine, and have failed asserts written from now on; the
 * first of them makes the folder.  Once in a process.  BH_BUG: the journal is not to be replayed; failures of
 * the state folder. */
BH_MUST_USE bh_rc bh_crash_open(struct bh_core *core, const char *version, struct bh_err *err);

#endif
