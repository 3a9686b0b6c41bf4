#ifndef BH_API_JOBS_JOB_NOTICES_H
#define BH_API_JOBS_JOB_NOTICES_H

#include "api/documents/job_document.h"
#include "api/request/call.h"

/* The notices of a job that the caller may see, in the call's arena: struct bh_reply_job_notice. */
BH_MUST_USE bh_rc bh_job_notices_list(const struct bh_call *call, uint64_t job, struct bh_list *ret,
                                      struct bh_err *err);

#endif
