#ifndef BH_AUDIT_TOKEN_FACTS_H
#define BH_AUDIT_TOKEN_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Whose an API token is and what it may do: "ev" of a record `token.create`,
 *
 *   {"token":{"expires_ns":"1","principal":2,"scopes":"job.view job.submit"}}
 *
 * canonical JSON without what is empty.  It is no event of the engine, which knows no tokens: a
 * replay passes over it. */
struct bh_token_facts {
    uint64_t expires_ns; /* since the epoch */
    uint32_t principal;  /* whose it is */
    const char *scopes;  /* verbs separated by blanks; "": all that its owner may */
};

/* Append them to `out`; check its overflow in the end. */
void bh_token_facts_put(struct bh_buf *out, const struct bh_token_facts *facts);

/* Whether a record's "ev" is such; false for NULL. */
bool bh_token_facts_is(const char *ev_json);

#endif
