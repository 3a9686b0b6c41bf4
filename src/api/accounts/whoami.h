#ifndef BH_API_ACCOUNTS_WHOAMI_H
#define BH_API_ACCOUNTS_WHOAMI_H

#include "api/request/call.h"

/* GET /v1/whoami; a bh_resource. */
bh_rc bh_whoami_show(struct bh_call *call, struct bh_err *err);

#endif
