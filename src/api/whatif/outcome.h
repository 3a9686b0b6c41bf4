#ifndef BH_API_WHATIF_OUTCOME_H
#define BH_API_WHATIF_OUTCOME_H

#include "api/request/call.h"
#include "api/state/simulation.h"

/* The answer to a what-if question: two futures that were played. */
struct bh_outcome {
    struct bh_simulation before, after;
    bh_job_id subject;            /* the job asked about; 0: none */
    bool submitted;               /* it is new: its number is no job's */
    struct bh_job_view view;      /* the subject as it stands right after the change */
    struct bh_reason reason;      /* and why */
    bh_tenant_id holder;          /* tenant of reason.job */
    const struct bh_answer *site; /* the dry run of the file asked about; NULL: none was */
};

/* Write it.  Jobs of tenants that the caller may not view are counted, not named.
 * BH_FULL: too large. */
BH_MUST_USE bh_rc bh_outcome_write(struct bh_call *call, const struct bh_outcome *outcome,
                                   struct bh_err *err);

#endif
