#ifndef BH_API_NODES_CORDON_H
#define BH_API_NODES_CORDON_H

#include "api/request/call.h"

/* POST /v1/cordon, /v1/uncordon and /v1/drain. */
extern const struct bh_fields bh_cordon_request_fields, bh_uncordon_request_fields, bh_drain_request_fields;

/* What the request names, also of one that is refused; NULL: nothing, or it cannot be read. */
const char *bh_cordon_target(struct bh_call *call);

bh_rc bh_cordon_post(struct bh_call *call, struct bh_err *err);

#endif
