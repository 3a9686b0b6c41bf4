#ifndef BH_API_STATE_ADMIT_H
#define BH_API_STATE_ADMIT_H

#include "engine/read/view.h"
#include "model/spec.h"
#include "policy/directory.h"

/* A submission before the policies of its tenant (policy/admission.h), with what the engine
 * counts. */
struct bh_admit {
    const struct bh_admission *admission;
    const struct bh_directory *dir; /* for tenants' numbers; NULL: nothing is counted */
    const struct bh_engine *engine; /* NULL: nothing is counted, and no cap judged */
    const char *tenant;             /* its path */
    const struct bh_job_spec *spec;
    const struct bh_ev_submit *submit; /* as bh_submission_fill makes it */
    uint64_t models;                   /* of the SKU */
    uint64_t now_ns;
};

/* What stands in the way. */
struct bh_admit_denial {
    enum bh_admission_rule_id rule;
    const char *owner; /* whose policy: a tenant's path, "" of the site */
};

/* BH_DENIED: `ret_denial`, message and hint say by what. */
BH_MUST_USE bh_rc bh_admit_check(const struct bh_admit *admit, struct bh_admit_denial *ret_denial,
                                 struct bh_err *err);

#endif
