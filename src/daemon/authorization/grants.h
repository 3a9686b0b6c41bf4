#ifndef BH_DAEMON_AUTHORIZATION_GRANTS_H
#define BH_DAEMON_AUTHORIZATION_GRANTS_H

#include "daemon/authorization/command.h"

/* A grant needs what it gives: a role by a site file, or a token for a different principal. */

/* Whether the caller may give every role that `site` gives and the one in force does not.  A
 * principal that becomes another Unix user's is given all its roles anew.  BH_DENIED: the
 * message names the entry and the verb, and the denial is recorded. */
BH_MUST_USE bh_rc bh_grants_check_site(struct bh_core *core, const struct bh_command *command,
                                       struct bh_err *err);

/* Whether the caller holds all that a token of `owner` with the command's scopes allows.
 * BH_DENIED as above. */
BH_MUST_USE bh_rc bh_grants_check_token(struct bh_core *core, const struct bh_command *command,
                                        bh_principal_id owner, struct bh_err *err);

#endif
