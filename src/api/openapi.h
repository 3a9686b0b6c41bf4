#ifndef BH_API_OPENAPI_H
#define BH_API_OPENAPI_H

#include "api/request/call.h"
#include "base/fields.h"

/* The description of the operation's body; NULL: it has none. */
const struct bh_fields *bh_openapi_body_of(enum bh_operation op);

/* The description of the JSON that it answers, or of its events; NULL: it answers no JSON. */
const struct bh_fields *bh_openapi_reply_of(enum bh_operation op);

/* GET /openapi.json; a bh_resource. */
bh_rc bh_openapi_show(struct bh_call *call, struct bh_err *err);

/* The OpenAPI 3.1 document, in the arena. */
const char *bh_api_openapi(struct bh_arena *arena);

#endif
