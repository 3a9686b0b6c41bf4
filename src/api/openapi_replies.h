#ifndef BH_API_OPENAPI_REPLIES_H
#define BH_API_OPENAPI_REPLIES_H

#include "base/json.h"
#include "policy/operations.h"

/* What replies hold, for the OpenAPI document: those about jobs.  Others are described by
 * their operation's summary only. */

/* The name of the schema of what the operation answers, or NULL. */
const char *bh_openapi_reply_of(enum bh_operation op);

/* All of them, as members of "schemas". */
void bh_openapi_put_replies(struct bh_json_writer *w);

#endif
