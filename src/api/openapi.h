#ifndef BH_API_OPENAPI_H
#define BH_API_OPENAPI_H

#include "api/call.h"

/* GET /openapi.json; a bh_resource.  The document itself: bh_api_openapi in api/api.h. */
bh_rc bh_openapi_show(struct bh_call *call, struct bh_err *err);

#endif
