#ifndef BH_API_NODES_GPUS_H
#define BH_API_NODES_GPUS_H

#include "api/request/call.h"

/* GET /v1/gpus; a bh_resource.  Jobs and tenants that the caller may not see are "another
 * tenant". */
bh_rc bh_gpus_list(struct bh_call *call, struct bh_err *err);

/* How a GPU is, in a word of docs/health.md: "ok", "lost", "needs_reboot". */
const char *bh_gpus_health(const struct bh_gpu_view *gpu);

#endif
