#ifndef BH_API_WHATIF_POLICY_H
#define BH_API_WHATIF_POLICY_H

#include "api/request/call.h"

/* POST /v1/policy/test: which submissions the policies would deny, and by which entry. */
struct bh_policy_test_request {
    struct bh_list jobs; /* struct bh_job_spec; none: those recorded */
    struct bh_site site; /* none: the one in force */
};

extern const struct bh_fields bh_policy_test_request_fields;

bh_rc bh_policy_test(struct bh_call *call, struct bh_err *err);

#endif
