#ifndef BH_API_ACCOUNTS_TOKENS_H
#define BH_API_ACCOUNTS_TOKENS_H

#include "api/request/call.h"

/* The body of POST /v1/tokens. */
extern const struct bh_fields bh_token_request_fields;

/* /v1/tokens; bh_resources.  A caller sees and revokes its own; token.any opens the others. */
bh_rc bh_tokens_create(struct bh_call *call, struct bh_err *err);
bh_rc bh_tokens_list(struct bh_call *call, struct bh_err *err);
bh_rc bh_tokens_revoke(struct bh_call *call, struct bh_err *err);

#endif
