#ifndef BH_DAEMON_BATCH_BATCH_H
#define BH_DAEMON_BATCH_BATCH_H

#include "daemon/state/core.h"

/* Opening the state, and the end of a batch: all of it becomes durable, or none of it was. */

/* Open store, signer and catalog and rebuild the state; the fields config, store,
 * crypto, hub and journal.checkpoints.signing are set by the caller.
 *   BH_CONFLICT  the log is shorter than, or differs from, what was signed, or replay
 *                does not lead to the recorded digest, or rows are missing */
BH_MUST_USE bh_rc bh_core_open(struct bh_core *core, struct bh_err *err);
void bh_core_close(struct bh_core *core);

/* Make the batch durable and tell the watchers.  Nothing to do when none is open and no job is
 * to be ended for want of access. */
BH_MUST_USE bh_rc bh_core_commit(struct bh_core *core, struct bh_err *err);

/* Throw the batch away and rebuild the state; failures of that end the daemon. */
BH_MUST_USE bh_rc bh_core_abort(struct bh_core *core, struct bh_err *err);

/* The committed batch's effects for the node; forgotten with bh_core_released. */
const struct bh_effect *bh_core_effects(const struct bh_core *core, uint32_t *ret_count);
void bh_core_released(struct bh_core *core);

#endif
