#ifndef BH_API_JOBS_JOB_RIGHTS_H
#define BH_API_JOBS_JOB_RIGHTS_H

#include "api/request/call.h"
#include "base/fields.h"

/* What the caller may do with a job as it is now, so that a client offers nothing that would be refused: in
 * the call's arena, by name in byte order: cancel, exec, logs, records (of the audit log about it), release,
 * submit (another like it), verify.  A right that waits for a second factor counts.  BH_FULL. */
BH_MUST_USE bh_rc bh_job_rights_list(const struct bh_call *call, const struct bh_job_row *row,
                                     struct bh_texts *ret_may, struct bh_err *err);

#endif
