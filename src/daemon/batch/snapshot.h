#ifndef BH_DAEMON_BATCH_SNAPSHOT_H
#define BH_DAEMON_BATCH_SNAPSHOT_H

#include "daemon/state/core.h"

/* Snapshots: the engine's block in a file, so that a start replays only what came
 * after.  The file is written first; then a record with the state's digest and the
 * store's note of it go into the open transaction together. */

/* Write one when enough records have come since the last. */
BH_MUST_USE bh_rc bh_snapshot_if_due(struct bh_core *core, struct bh_err *err);

/* Write one now; opens the transaction if none is open. */
BH_MUST_USE bh_rc bh_snapshot_write(struct bh_core *core, struct bh_err *err);

/* The batch with a snapshot in it is durable: the file of the one before may go. */
void bh_snapshot_committed(struct bh_core *core);

/* Put the state and the journal's position where the last usable snapshot has them, or
 * at the very beginning.  Never fails for a bad snapshot: it is logged and ignored. */
BH_MUST_USE bh_rc bh_snapshot_load(struct bh_core *core, struct bh_err *err);

/* How many records the last snapshot covers, when its file is what was written.
 * BH_NOT_FOUND: there is none yet; BH_INVALID: it is damaged; BH_IO: its file cannot be read. */
BH_MUST_USE bh_rc bh_snapshot_check(struct bh_core *core, uint64_t *ret_seq, struct bh_err *err);

#endif
