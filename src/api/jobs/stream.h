#ifndef BH_API_JOBS_STREAM_H
#define BH_API_JOBS_STREAM_H

#include "api/request/call.h"

/* GET /v1/jobs/{id}/logs and /v1/watch; bh_resources.  Server-sent events:
 *
 *   logs?follow=true   event "log": {"offset","text"}, or {"offset","base64"} where the
 *                      bytes are no text; the id is the offset to continue from.  Event
 *                      "end": {"state","cause","exit_status"} when the job has ended and
 *                      all was sent
 *   watch              event "change": {"number","job","tenant","state","reason","at_ns"}
 *
 * A comment is sent every two seconds of silence.  The caller and its rights are checked anew before every
 * event: event "denied" ends a stream whose caller may no longer read it. */
bh_rc bh_stream_logs(struct bh_call *call, struct bh_err *err);
bh_rc bh_stream_watch(struct bh_call *call, struct bh_err *err);

#endif
