#include "api/state/admit.h"

#include <string.h>

/* Jobs of a tenant and what is below, or of the whole site. */
static void
count_jobs(const struct bh_admit *admit, bh_tenant_id owner, struct bh_admission_counts *counts)
{
    struct bh_tenant_view view;
    uint32_t cursor = 0;

    if (owner.v != 0) {
        if (!bh_view_tenant(admit->engine, owner, admit->now_ns, &view))
            return;
        counts->running = view.running;
        counts->pending = view.pending;
        return;
    }
    while (bh_view_next_tenant(admit->engine, &cursor, admit->now_ns, &view)) {
        if (view.settings.parent.v != 0)
            continue;
        counts->running += view.running;
        counts->pending += view.pending;
    }
}

/* A walk over all jobs, so only where a policy caps the SKU. */
static uint64_t
count_partitions(const struct bh_admit *admit, bh_tenant_id owner)
{
    struct bh_job_view job;
    uint64_t partitions = 0;
    uint32_t cursor = 0;

    while (bh_view_next_job(admit->engine, &cursor, &job))
        if (job.cause == BH_END_NONE && bh_same(job.sku, admit->submit->sku)
            && (owner.v == 0 || bh_view_within(admit->engine, owner, job.tenant)))
            partitions += (uint64_t)job.count * (job.gang ? job.gang : 1);
    return partitions;
}

static bh_rc
check_policy(const struct bh_admit *admit, const struct bh_admission_policy *policy,
             const struct bh_admission_request *request, struct bh_admit_denial *ret_denial,
             struct bh_err *err)
{
    struct bh_admission_counts counts = { .running = 0 };
    const struct bh_dir_tenant *owner = NULL;
    bh_rc rc;

    if (admit->engine && *policy->owner)
        owner = bh_directory_tenant_named(admit->dir, policy->owner);
    if (admit->engine && (owner || !*policy->owner)) {
        bh_tenant_id id = owner ? owner->id : (bh_tenant_id){ 0 };

        count_jobs(admit, id, &counts);
        if (bh_admission_sku_partitions(policy, admit->spec->sku) != UINT64_MAX)
            counts.partitions = count_partitions(admit, id);
    }
    rc = bh_admission_check(policy, request, admit->engine ? &counts : NULL, &ret_denial->rule, err);
    if (rc != BH_OK)
        ret_denial->owner = policy->owner;
    return rc;
}

bh_rc
bh_admit_check(const struct bh_admit *admit, struct bh_admit_denial *ret_denial, struct bh_err *err)
{
    const struct bh_ev_submit *submit = admit->submit;
    const struct bh_admission_request request = { .spec = admit->spec,
                                                  .count = submit->count,
                                                  .gang = submit->gang ? submit->gang : 1,
                                                  .cpu_milli = submit->cpu_milli,
                                                  .memory_mib = submit->memory_mib,
                                                  .time_limit_ns = submit->time_limit_ns,
                                                  .priority = submit->priority,
                                                  .models = admit->models,
                                                  .now_ns = admit->now_ns };
    const struct bh_admission_policy *policy;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && (policy = bh_admission_next(admit->admission, admit->tenant, &cursor)))
        rc = check_policy(admit, policy, &request, ret_denial, err);
    return rc;
}
