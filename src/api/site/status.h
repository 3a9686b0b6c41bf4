#ifndef BH_API_SITE_STATUS_H
#define BH_API_SITE_STATUS_H

#include "api/request/call.h"

/* GET /v1/status and /healthz; bh_resources. */
bh_rc bh_status_show(struct bh_call *call, struct bh_err *err);
bh_rc bh_status_health(struct bh_call *call, struct bh_err *err);

#endif
