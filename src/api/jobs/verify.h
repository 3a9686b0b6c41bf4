#ifndef BH_API_JOBS_VERIFY_H
#define BH_API_JOBS_VERIFY_H

#include "api/request/call.h"

/* Whether jobs can leave their sandboxes: JOB_VERIFY, NODE_VERIFY.  They answer when the nodes
 * have said what came of it, or after 30 seconds with what there is then. */
BH_MUST_USE bh_rc bh_verify_job(struct bh_call *call, struct bh_err *err);
BH_MUST_USE bh_rc bh_verify_node(struct bh_call *call, struct bh_err *err);

#endif
