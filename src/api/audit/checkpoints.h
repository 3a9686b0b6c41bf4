#ifndef BH_API_AUDIT_CHECKPOINTS_H
#define BH_API_AUDIT_CHECKPOINTS_H

#include "api/request/call.h"

/* GET /v1/checkpoints; a bh_resource. */
bh_rc bh_checkpoints_list(struct bh_call *call, struct bh_err *err);

#endif
