#ifndef BH_API_JOBS_FAILURE_H
#define BH_API_JOBS_FAILURE_H

#include "api/documents/job_document.h"
#include "api/request/call.h"

enum { BH_FAILURE_WHY_MAX = 512 };

/* What the node said of a job that could not be started, or that it ended, without and with what to do
 * ("" is nothing); false: nothing is known, it was erased, or its record was pruned. */
bool bh_failure_read(const struct bh_call *call, uint64_t job, char ret_why[BH_FAILURE_WHY_MAX],
                     char ret_hint[BH_FAILURE_WHY_MAX]);

#endif
