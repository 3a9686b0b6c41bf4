#ifndef BH_API_REQUEST_STREAM_GATE_H
#define BH_API_REQUEST_STREAM_GATE_H

#include "api/request/call.h"

/* How many streams of changes and logs each principal has open, over all transports: each holds a
 * connection as long as its reader likes. */
struct bh_stream_gate;

/* `most` of one principal, 0: any number.  `crowded`, unless it is NULL, is called with each principal that
 * is refused.  Owned by the caller. */
BH_MUST_USE struct bh_stream_gate *bh_stream_gate_new(uint32_t most, bh_http_crowded crowded);
void bh_stream_gate_free(struct bh_stream_gate *gate); /* all have left */

/* One more of the call's principal.  Local root may have any number.
 *   BH_TOO_MANY  it has as many as one may; call->retry_after_s says when to ask again */
BH_MUST_USE bh_rc bh_stream_gate_enter(struct bh_call *call, struct bh_err *err);
void bh_stream_gate_leave(struct bh_stream_gate *gate, bh_principal_id principal);

#endif
