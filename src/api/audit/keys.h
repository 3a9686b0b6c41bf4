#ifndef BH_API_AUDIT_KEYS_H
#define BH_API_AUDIT_KEYS_H

#include "api/request/call.h"

/* /v1/keys: what personal texts are sealed with.  Numbers, months and states; never a
 * key. */

extern const struct bh_fields bh_shred_request_fields;

BH_MUST_USE bh_rc bh_key_list(struct bh_call *call, struct bh_err *err);
BH_MUST_USE bh_rc bh_key_shred(struct bh_call *call, struct bh_err *err);
BH_MUST_USE bh_rc bh_key_rotate(struct bh_call *call, struct bh_err *err);

#endif
