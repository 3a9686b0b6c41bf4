#ifndef BH_API_SITE_USAGE_H
#define BH_API_SITE_USAGE_H

#include "api/request/call.h"

/* GET /v1/usage; a bh_resource.  A caller that sees the whole site gets the sums too: tenants, idle and
 * unusable add up to physical time. */
bh_rc bh_usage_show(struct bh_call *call, struct bh_err *err);

#endif
