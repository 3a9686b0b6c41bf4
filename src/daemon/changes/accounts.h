#ifndef BH_DAEMON_CHANGES_ACCOUNTS_H
#define BH_DAEMON_CHANGES_ACCOUNTS_H

#include "daemon/state/core.h"

/* Changes of accounts, factors and sessions (api/request/owner.h, struct bh_accounts_change).
 *
 *   BH_CONFLICT  a document has changed since the change was decided; nothing was
 *                written: read again and decide again
 *   BH_DENIED    as bh_command_deny */
BH_MUST_USE bh_rc bh_accounts_change(struct bh_core *core, const struct bh_command *command,
                                     struct bh_arena *arena, struct bh_answer *ret_answer,
                                     struct bh_err *err);

/* A principal is removed from the site: its account, passkeys and sessions go with it. */
BH_MUST_USE bh_rc bh_accounts_forget(struct bh_core *core, uint32_t principal, struct bh_err *err);

#endif
