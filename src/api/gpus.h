#ifndef BH_API_GPUS_H
#define BH_API_GPUS_H

#include "api/call.h"

/* GET /v1/gpus; a bh_resource.  Jobs and tenants that the caller may not see are "another
 * tenant". */
bh_rc bh_gpus_list(struct bh_call *call, struct bh_err *err);

#endif
