#include "daemon/whose.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/core.h"

static bool
take_row(void *self, const struct bh_job_row *row)
{
    struct bh_whose *whose = self;

    *whose = (struct bh_whose){ { row->tenant_id }, { row->principal_id }, "" };
    snprintf(whose->state, sizeof whose->state, "%s", row->state ? row->state : "");
    return false;
}

bh_rc
bh_whose_job(const struct bh_core *core, bh_job_id job, struct bh_whose *ret_whose,
             struct bh_err *err)
{
    struct bh_whose whose = { .tenant = { 0 } };
    struct bh_job_view view;
    bh_rc rc;

    if (bh_view_job(core->state.engine, job, &view)) {
        *ret_whose = (struct bh_whose){ view.tenant, view.principal, "" };
        snprintf(ret_whose->state, sizeof ret_whose->state, "%s", bh_job_state_names[view.state]);
        return BH_OK;
    }
    if (job.v == 0 || job.v >= core->next_job)
        return bh_err_set(err, BH_NOT_FOUND, "job %" PRIu64 " does not exist", job.v);
    rc = core->store.ops->get_job(core->store.self, job.v, take_row, &whose, err);
    if (rc == BH_OK)
        *ret_whose = whose;
    return rc;
}
