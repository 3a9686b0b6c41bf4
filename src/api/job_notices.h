#ifndef BH_API_JOB_NOTICES_H
#define BH_API_JOB_NOTICES_H

#include "api/call.h"
#include "api/job_document.h"

/* The list `notices` of a job that the caller may see; nothing when there is none. */
BH_MUST_USE bh_rc bh_job_notices_put(const struct bh_call *call, struct bh_json_writer *w,
                                     uint64_t job, struct bh_err *err);

#endif
