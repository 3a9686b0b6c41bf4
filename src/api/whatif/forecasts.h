#ifndef BH_API_WHATIF_FORECASTS_H
#define BH_API_WHATIF_FORECASTS_H

#include "api/request/call.h"

/* GET /v1/forecast: the expected use of tenants, pools, partitions and nodes, how well such bounds held so
 * far, and what follows from them.  Tenants are those whose usage the caller may see; the rest is for callers
 * that may see all usage. */
BH_MUST_USE bh_rc bh_forecasts_show(struct bh_call *call, struct bh_err *err);

#endif
