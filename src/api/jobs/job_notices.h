#ifndef BH_API_JOBS_JOB_NOTICES_H
#define BH_API_JOBS_JOB_NOTICES_H

#include "api/documents/job_document.h"
#include "api/request/call.h"

/* The list `notices` of a job that the caller may see; nothing when there is none. */
BH_MUST_USE bh_rc bh_job_notices_put(const struct bh_call *call, struct bh_json_writer *w, uint64_t job,
                                     struct bh_err *err);

#endif
