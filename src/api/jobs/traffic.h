#ifndef BH_API_JOBS_TRAFFIC_H
#define BH_API_JOBS_TRAFFIC_H

#include "api/documents/replies.h"
#include "api/request/call.h"

/* What all members of a job sent and received since it was first started: what is in the store of
 * leases that ended, and of those that run what their nodes said last; NULL where no network of it is
 * known.  Results of bh_job_document_get. */
BH_MUST_USE bh_rc bh_traffic_of_job(const struct bh_call *call, uint64_t job,
                                    const struct bh_reply_traffic **ret, struct bh_err *err);

#endif
