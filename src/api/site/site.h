#ifndef BH_API_SITE_SITE_H
#define BH_API_SITE_SITE_H

#include "api/request/call.h"

/* GET and PUT /v1/site, and its revisions; bh_resources. */
bh_rc bh_site_get(struct bh_call *call, struct bh_err *err);
bh_rc bh_site_apply(struct bh_call *call, struct bh_err *err);
bh_rc bh_site_revisions(struct bh_call *call, struct bh_err *err);
bh_rc bh_site_revision(struct bh_call *call, struct bh_err *err);
bh_rc bh_site_diff(struct bh_call *call, struct bh_err *err);

#endif
