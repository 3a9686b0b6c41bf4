#ifndef BH_DAEMON_STATE_JOB_OWNER_H
#define BH_DAEMON_STATE_JOB_OWNER_H

#include "base/err.h"
#include "model/ids.h"

struct bh_core;

/* The owner of a job, also of one that has ended and that the engine no longer has: rights are checked before
 * an answer shows the job's state. */
struct bh_job_owner {
    bh_tenant_id tenant;
    bh_principal_id principal;
    char state[20]; /* by its name, as it is now */
};

/* BH_NOT_FOUND: there is none of that number.  Results of the store's get_job. */
BH_MUST_USE bh_rc bh_job_owner_find(const struct bh_core *core, bh_job_id job, struct bh_job_owner *ret_owner,
                                    struct bh_err *err);

#endif
