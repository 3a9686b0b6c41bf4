#ifndef BH_API_METRICS_METRICS_H
#define BH_API_METRICS_METRICS_H

#include "api/request/call.h"

/* GET /metrics; a bh_resource.  The rows of tables/metrics.tbl, as text or OpenMetrics by the header
 * Accept: series of the tenants on which the caller holds metrics.view, and those of the site if it holds
 * that there. */
bh_rc bh_metrics_show(struct bh_call *call, struct bh_err *err);

#endif
