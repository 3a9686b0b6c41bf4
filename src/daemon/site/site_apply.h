#ifndef BH_DAEMON_SITE_SITE_APPLY_H
#define BH_DAEMON_SITE_SITE_APPLY_H

#include "daemon/state/core.h"

/* SITE_APPLY: the file's difference from the one in force is the answer of a dry run, and is
 * sealed in the record of the real one, whose number is the file's revision.
 *   BH_CONFLICT  another revision is in force than the caller says; the engine refuses; or names
 *                would be removed that have something (daemon/site/removals.h), without `prune`
 *   BH_DENIED    as bh_command_deny */
BH_MUST_USE bh_rc bh_site_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                              struct bh_answer *ret_answer, struct bh_err *err);

#endif
