#ifndef BH_API_REQUEST_ANSWER_H
#define BH_API_REQUEST_ANSWER_H

#include "api/documents/replies.h"
#include "api/request/owner.h"
#include "base/buf.h"

/* The body of a mutation's reply, made from the owner's answer alone: the owner keeps
 * the same bytes under the idempotency key.
 *
 * With `keep` no secret is written: what is stored must not open anything, so a repeated
 * TOKEN_CREATE shows the token's id only. */
void bh_answer_encode(struct bh_buf *out, const struct bh_command *command, const struct bh_answer *answer,
                      bool keep);

/* The same of a SITE_APPLY, which what-if shows, too. */
struct bh_reply_site_changes bh_answer_site(const struct bh_answer *answer, bool dry_run);

/* The reply's HTTP status: 201 for what was made, 200 otherwise. */
uint32_t bh_answer_status(const struct bh_command *command);

#endif
