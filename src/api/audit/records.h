#ifndef BH_API_AUDIT_RECORDS_H
#define BH_API_AUDIT_RECORDS_H

#include "api/request/call.h"

/* GET /v1/records; a bh_resource.  Records of tenants that the caller may not see are left
 * out, as are those that a search is not for; with raw=true and no search their hash
 * stands for them, so that the tree can still be verified. */
bh_rc bh_records_list(struct bh_call *call, struct bh_err *err);

/* GET /v1/records/{id}; a bh_resource.  A record that the caller may not see is one that does not exist. */
bh_rc bh_records_get(struct bh_call *call, struct bh_err *err);

#endif
