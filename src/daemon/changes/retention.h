#ifndef BH_DAEMON_CHANGES_RETENTION_H
#define BH_DAEMON_CHANGES_RETENTION_H

#include "daemon/state/core.h"

/* How long the audit log is kept (docs/audit.md, "Retention").
 *
 * AUDIT_PRUNE, as bh_dispatch_run: of the oldest records the bytes go and the hashes stay, so
 * that the tree, its proofs and its checkpoints are what they were.  The minimum index, below
 * which that was done, stands in the record of it and in the store's "minimum"; it is a multiple
 * of 256, the records of a bundle.
 *
 * Only what `audit_retention` lets go, what the caller's checkpoint covers (they have an export of
 * it), and what no start needs: what the last snapshot covers, whose file is read again for that.
 * At most 16,384 records at once; the answer says whether there are more.
 *   BH_CONFLICT  no retention is configured; a tenant is under a legal hold; there is no
 *                usable snapshot
 *   BH_INVALID   the checkpoint is not one that this log signed */
BH_MUST_USE bh_rc bh_retention_run(struct bh_core *core, const struct bh_command *command,
                                   struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

#endif
