#ifndef BH_DAEMON_OWNER_REPLIES_H
#define BH_DAEMON_OWNER_REPLIES_H

#include "daemon/state/core.h"

/* Answers that are remembered by idempotency key, so that a repeat of a request gets the same. */

/* The remembered answer of an earlier request with the same key.
 *   BH_NOT_FOUND  there is none
 *   BH_CONFLICT   the key was used for another request */
BH_MUST_USE bh_rc bh_replies_find(struct bh_core *core, const struct bh_command *command,
                                  struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

/* Remember the answer with the batch: the same bytes as the first one's, less a token's secret. */
BH_MUST_USE bh_rc bh_replies_put(struct bh_core *core, const struct bh_command *command,
                                 const struct bh_answer *answer, struct bh_err *err);

#endif
