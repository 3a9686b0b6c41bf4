#ifndef BH_DAEMON_CHANGES_TOKENS_H
#define BH_DAEMON_CHANGES_TOKENS_H

#include "daemon/state/core.h"

/* TOKEN_CREATE and TOKEN_REVOKE, as bh_dispatch_run.  The secret is in the answer only:
 * the store has its SHA-256, the journal the token's public id. */
BH_MUST_USE bh_rc bh_token_create(struct bh_core *core, const struct bh_command *command,
                                  struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);
BH_MUST_USE bh_rc bh_token_revoke(struct bh_core *core, const struct bh_command *command,
                                  struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

/* A principal is removed: revoke all its tokens. */
BH_MUST_USE bh_rc bh_tokens_revoke_all(struct bh_core *core, uint32_t principal, struct bh_err *err);

#endif
