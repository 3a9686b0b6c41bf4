#ifndef BH_API_SITE_TENANTS_H
#define BH_API_SITE_TENANTS_H

#include "api/request/call.h"

/* GET /v1/tenants; a bh_resource. */
bh_rc bh_tenants_list(struct bh_call *call, struct bh_err *err);

/* GET /v1/tenants/{rest}, by its path; a bh_resource. */
bh_rc bh_tenants_get(struct bh_call *call, struct bh_err *err);

#endif
