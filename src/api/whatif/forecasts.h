#ifndef BH_API_WHATIF_FORECASTS_H
#define BH_API_WHATIF_FORECASTS_H

#include "api/request/call.h"

/* GET /v1/forecast: what is expected of tenants, pools, partitions and nodes, how such bounds
 * were kept so far, and what follows from them.  Tenants are those whose usage the caller
 * may see; the rest is for those who may see all usage. */
BH_MUST_USE bh_rc bh_forecasts_show(struct bh_call *call, struct bh_err *err);

#endif
