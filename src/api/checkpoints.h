#ifndef BH_API_CHECKPOINTS_H
#define BH_API_CHECKPOINTS_H

#include "api/call.h"

/* GET /v1/checkpoints; a bh_resource. */
bh_rc bh_checkpoints_list(struct bh_call *call, struct bh_err *err);

#endif
