#ifndef BH_API_METRICS_SERIES_H
#define BH_API_METRICS_SERIES_H

#include "api/request/call.h"

/* GET /v1/series: samples over time (docs/series.md). */
bh_rc bh_series_show(struct bh_call *call, struct bh_err *err);

#endif
