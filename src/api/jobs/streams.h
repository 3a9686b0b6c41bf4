#ifndef BH_API_JOBS_STREAMS_H
#define BH_API_JOBS_STREAMS_H

#include "api/request/streams_port.h"
#include "base/fields.h"

struct bh_call;

/* Interactive streams: POST /v1/jobs/{id}/exec, attach and forward ask for one, which is
 * recorded and answered with a ticket; GET /v1/streams/{id} with `Upgrade: bulkhead-stream` and
 * that ticket is the stream (wire/stream.h).  A ticket is good once, for its principal, for
 * BH_STREAM_TICKET_NS; that of a forward opens a stream that carries nothing, and as long as it
 * is open one for each connection, by ?port=.  bh_resources. */
bh_rc bh_streams_ask(struct bh_call *call, struct bh_err *err);
bh_rc bh_streams_open(struct bh_call *call, struct bh_err *err);

extern const struct bh_fields bh_exec_request_fields, bh_attach_request_fields, bh_forward_request_fields;

#endif
