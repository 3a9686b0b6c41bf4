#ifndef BH_DAEMON_CHANGES_TOKEN_RETENTION_H
#define BH_DAEMON_CHANGES_TOKEN_RETENTION_H

#include "daemon/state/core.h"

/* Tokens that open nothing any more, revoked or expired: of each principal so many are kept, those
 * that were made last, for the question what a token was (docs/limits.md). */
enum { BH_TOKENS_EXPIRED_MAX = 64 };

/* Before the first token of an open batch is made for the principal: those beyond are forgotten,
 * and a record (token.forget) says how many.  Failures of the store. */
BH_MUST_USE bh_rc bh_tokens_forget(struct bh_core *core, uint32_t principal, struct bh_err *err);

#endif
