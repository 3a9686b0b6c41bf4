#ifndef BH_DAEMON_CHANGES_TOKEN_RETENTION_H
#define BH_DAEMON_CHANGES_TOKEN_RETENTION_H

#include "daemon/state/core.h"

/* Tokens that are revoked or expired: for each principal the newest are kept, up to a limit, so that records
 * that name them can be explained (docs/limits.md). */
enum { BH_TOKENS_EXPIRED_MAX = 64 };

/* Before the first token of an open batch is made for the principal: those beyond are forgotten,
 * and a record (token.forget) says how many.  Failures of the store. */
BH_MUST_USE bh_rc bh_tokens_forget(struct bh_core *core, uint32_t principal, struct bh_err *err);

#endif
