#ifndef BH_API_JOBS_LOG_LINES_H
#define BH_API_JOBS_LOG_LINES_H

#include "api/request/call.h"

/* GET /v1/jobs/{id}/log: lines of a job's output that end at a byte, a page of them; a bh_resource. */
bh_rc bh_log_lines_list(struct bh_call *call, struct bh_err *err);

#endif
