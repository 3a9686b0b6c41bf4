#ifndef BH_API_AUDIT_LOG_ROWS_H
#define BH_API_AUDIT_LOG_ROWS_H

#include "api/request/call.h"

/* What the ids and digests of records stand for, for an export: lines as audit/rows.h says.
 * bh_resources. */

/* GET /v1/log/rows/names, .../jobs and .../texts: names that the first `size` records bind, jobs
 * whose end these tell, and texts; those behind `after`, as many as a page
 * holds.  None: that was all.  BH_NOT_FOUND: no such rows; BH_RANGE: there are not so many
 * records. */
bh_rc bh_log_rows(struct bh_call *call, struct bh_err *err);

#endif
