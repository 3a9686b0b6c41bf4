#ifndef BH_API_JOBS_JOB_FILTER_H
#define BH_API_JOBS_JOB_FILTER_H

#include "api/request/call.h"
#include "ports/store.h"

/* Which jobs a list is about, as its parameters say.  Folder-internal. */

/* Of the tenants that the caller sees.
 *   BH_INVALID, BH_RANGE  a parameter, or two that do not go together
 *   others                results of the store */
BH_MUST_USE bh_rc bh_job_filter_read(struct bh_call *call, struct bh_job_filter *ret_filter,
                                     struct bh_err *err);

/* As partitions of the GPU that is asked for begin in rows of jobs: "GPU-3f2a1bd7 "; "": none is.
 *   BH_NOT_FOUND  there is no such GPU */
enum { BH_JOB_FILTER_GPU_SIZE = 14 };
BH_MUST_USE bh_rc bh_job_filter_read_gpu(const struct bh_call *call, char ret_gpu[BH_JOB_FILTER_GPU_SIZE],
                                         struct bh_err *err);

#endif
