#include "daemon/state/job_owner.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/state/core.h"

static bool
job_owner_read_row(void *self, const struct bh_job_row *row)
{
    struct bh_job_owner *owner = self;

    *owner = (struct bh_job_owner){ { row->tenant_id }, { row->principal_id }, "" };
    snprintf(owner->state, sizeof owner->state, "%s", row->state ? row->state : "");
    return false;
}

bh_rc
bh_job_owner_find(const struct bh_core *core, bh_job_id job, struct bh_job_owner *ret_owner,
                  struct bh_err *err)
{
    struct bh_job_owner owner = { .tenant = { 0 } };
    struct bh_job_view view;
    bh_rc rc;

    if (bh_view_job(core->state.engine, job, &view)) {
        *ret_owner = (struct bh_job_owner){ view.tenant, view.principal, "" };
        snprintf(ret_owner->state, sizeof ret_owner->state, "%s", bh_job_state_names[view.state]);
        return BH_OK;
    }
    if (job.v == 0 || job.v >= core->next_job)
        return bh_err_set(err, BH_NOT_FOUND, "job %" PRIu64 " does not exist", job.v);
    rc = core->store.ops->get_job(core->store.self, job.v, job_owner_read_row, &owner, err);
    if (rc != BH_OK)
        return rc;
    *ret_owner = owner;
    return BH_OK;
}
