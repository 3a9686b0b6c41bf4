#ifndef BH_API_JOBS_TRAFFIC_H
#define BH_API_JOBS_TRAFFIC_H

#include "api/request/call.h"

/* Write the member `traffic`: what all members of a job sent and received since it was first
 * started: what is in the store of leases that ended, and of those that run what their nodes said
 * last.  Nothing when no network of it is known.  Results of bh_job_document_get. */
BH_MUST_USE bh_rc bh_traffic_put_job(const struct bh_call *call, struct bh_json_writer *w, uint64_t job,
                                     struct bh_err *err);

#endif
