#include "replay/scenario_run.h"

#include <string.h>

#include "base/assert.h"

void
bh_scenario_run_init(struct bh_scenario_run *run)
{
    *run = (struct bh_scenario_run){ .world = bh_world_new(), .names = bh_names_new() };
}

void
bh_scenario_run_fini(struct bh_scenario_run *run)
{
    bh_world_free(run->world);
    bh_names_free(run->names);
    bh_supposed_free(run->supposed);
    *run = (struct bh_scenario_run){ 0 };
}

bh_rc
bh_scenario_run_send(struct bh_scenario_run *run, struct bh_event *event, struct bh_err *err)
{
    struct bh_reason why;
    bh_rc rc;

    if (run->supposing)
        return bh_supposed_send(run, event, err);
    rc = bh_world_send(run->world, event, &why, err);
    if (rc != BH_OK && rc != BH_BUG && rc != BH_UNAVAILABLE) {
        run->refused = true;
        run->refusal = why.code;
    }
    return rc;
}

bh_rc
bh_scenario_run_job(const struct bh_scenario_run *run, const char *name, struct bh_job_view *ret_view,
                    struct bh_err *err)
{
    struct bh_reported_job reported;
    uint32_t id;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_JOB, name, &id, err);

    if (rc != BH_OK || bh_view_job(bh_world_engine(run->world), (bh_job_id){ id }, ret_view))
        return rc;
    if (!bh_world_reported(run->world, (bh_job_id){ id }, &reported))
        return bh_err_set(err, BH_NOT_FOUND, "job %.80s was never accepted", name);
    *ret_view = (struct bh_job_view){
        .job = { id }, .state = reported.state, .cause = reported.cause, .exit_status = reported.exit_status
    };
    return BH_OK;
}

bh_rc
bh_scenario_run_gpu(const struct bh_scenario_run *run, const char *name, struct bh_gpu_view *ret_view,
                    struct bh_err *err)
{
    uint32_t id;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_GPU, name, &id, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_view_gpu(bh_world_engine(run->world), (bh_gpu_id){ id }, ret_view))
        return bh_err_set(err, BH_UNAVAILABLE, "the engine does not know GPU %.80s now", name);
    return BH_OK;
}

bh_rc
bh_scenario_run_report(const struct bh_scenario_run *run, const char *name, struct bh_event *ret_event,
                       struct bh_err *err)
{
    struct bh_gpu_view view;
    bh_rc rc = bh_scenario_run_gpu(run, name, &view, err);

    if (rc != BH_OK)
        return rc;
    *ret_event = (struct bh_event){ .kind = BH_EV_GPU, .u.gpu = bh_view_gpu_report(&view) };
    return BH_OK;
}

bh_rc
bh_scenario_run_tenant(const struct bh_scenario_run *run, const char *path, struct bh_tenant_view *ret_view,
                       struct bh_err *err)
{
    uint32_t id;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_TENANT, path, &id, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_view_tenant(bh_world_engine(run->world), (bh_tenant_id){ id }, bh_world_now_ns(run->world),
                        ret_view))
        return bh_err_set(err, BH_UNAVAILABLE, "the engine does not know tenant %.80s now", path);
    return BH_OK;
}
