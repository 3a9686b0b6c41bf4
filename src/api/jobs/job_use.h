#ifndef BH_API_JOBS_JOB_USE_H
#define BH_API_JOBS_JOB_USE_H

#include "api/documents/replies.h"
#include "api/request/call.h"

/* What a job that has begun to run holds of GPUs, or held, and for how long: in the call's arena; NULL where
 * it has not begun, or its SKU is gone.  BH_FULL, and results of bh_call_ask. */
BH_MUST_USE bh_rc bh_job_use_find(const struct bh_call *call, const struct bh_job_row *row,
                                  const struct bh_reply_job_use **ret_use, struct bh_err *err);

#endif
