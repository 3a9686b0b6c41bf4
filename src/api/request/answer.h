#ifndef BH_API_REQUEST_ANSWER_H
#define BH_API_REQUEST_ANSWER_H

#include "api/request/owner.h"
#include "base/buf.h"

/* The body of a mutation's reply, made from the owner's answer alone: the owner keeps
 * the same bytes under the idempotency key.
 *
 * With `keep` no secret is written: what is stored must not open anything, so a repeated
 * TOKEN_CREATE shows the token's id only. */
void bh_answer_encode(struct bh_buf *out, const struct bh_command *command, const struct bh_answer *answer,
                      bool keep);

/* Members of SITE_APPLY's: "change_count", "changes", "changes_sha256" (api/documents/site_changes.h),
 * "dry_run", "removes", "revision", "warnings". */
void bh_answer_put_site(struct bh_json_writer *w, const struct bh_answer *answer, bool dry_run);

/* The reply's HTTP status: 201 for what was made, 200 otherwise. */
uint32_t bh_answer_status(const struct bh_command *command);

#endif
