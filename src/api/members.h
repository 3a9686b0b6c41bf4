#ifndef BH_API_MEMBERS_H
#define BH_API_MEMBERS_H

#include "api/call.h"

/* The members of a job that has leases, as the engine has them: "members" with the node,
 * pieces and state of each.  Nothing for a job that has ended or waits. */
BH_MUST_USE bh_rc bh_members_put(struct bh_call *call, struct bh_json_writer *w, uint64_t job,
                                 struct bh_err *err);

#endif
