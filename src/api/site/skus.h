#ifndef BH_API_SITE_SKUS_H
#define BH_API_SITE_SKUS_H

#include "api/request/call.h"

/* GET /v1/skus; a bh_resource. */
bh_rc bh_skus_list(struct bh_call *call, struct bh_err *err);

#endif
