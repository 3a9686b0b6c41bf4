#ifndef BH_DAEMON_CHANGES_SHRED_H
#define BH_DAEMON_CHANGES_SHRED_H

#include "daemon/state/core.h"

/* KEY_SHRED, as bh_dispatch_run: destroying what a tenant's personal texts are sealed with.
 *
 * Two persons: the first call is recorded as key.shred.ask and answers a token; a second administrator's with
 * that token, within 24 hours and while the keys are the same, destroys them.  Where no other administrator
 * could confirm, the first call does it.  Refused while the tenant is under a legal hold, or has jobs of that
 * time that have not ended: those read their specification yet.
 *
 * With a name instead of a tenant, that name alone is erased, with what opens the commitment that binds it;
 * it is not in use, and no tenant is under a legal hold.  The id stays.
 *
 * The destroyed keys are recorded one by one, all texts that they sealed, names and plain texts of the jobs
 * go with them, and the store is scrubbed after the commit. */
BH_MUST_USE bh_rc bh_shred_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                               struct bh_answer *ret_answer, struct bh_err *err);

/* BH_CONFLICT: the site file `fresh` would remove a tenant that is under a legal hold. */
BH_MUST_USE bh_rc bh_hold_check(const struct bh_core *core, const struct bh_site *fresh, struct bh_err *err);

#endif
