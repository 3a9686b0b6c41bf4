#include "lab/load/simulation_plan.h"

#include "model/geometry.h"

uint32_t
bh_simulation_job_members(const struct bh_simulation_job *job)
{
    return job->gang > 1 ? job->gang : 1;
}

uint64_t
bh_simulation_job_parts(const struct bh_simulation_site *site, const struct bh_simulation_job *job)
{
    uint64_t partitions = (uint64_t)job->count * bh_simulation_job_members(job);

    for (uint32_t i = 0; i < site->sku_count; i++)
        if (bh_same(site->skus[i].sku, job->sku)) {
            bh_profile_id profile = { site->skus[i].models[0].profile };

            return partitions * bh_parts_equivalent(bh_profile_parts(profile));
        }
    return 0;
}

uint32_t
bh_simulation_site_last_tenant(const struct bh_simulation_site *site)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < site->tenant_count; i++)
        if (site->tenants[i].tenant.v > last)
            last = site->tenants[i].tenant.v;
    return last;
}

bh_rc
bh_simulation_plan_check(const struct bh_simulation_plan *plan, struct bh_err *err)
{
    uint32_t last = bh_simulation_site_last_tenant(&plan->site);
    uint64_t before_ns = 0;

    for (uint32_t i = 0; i < plan->job_count; i++) {
        const struct bh_simulation_job *job = &plan->jobs[i];

        if (job->submit_ns < before_ns)
            return bh_err_set(err, BH_INVALID, "job %u is submitted before the one before it", i + 1);
        if (job->tenant.v == 0 || job->tenant.v > last)
            return bh_err_set(err, BH_INVALID, "job %u: no such tenant", i + 1);
        if (job->count == 0 || job->count > BH_JOB_COUNT_MAX)
            return bh_err_set(err, BH_INVALID, "job %u wants %u partitions on one node", i + 1, job->count);
        before_ns = job->submit_ns;
    }
    return BH_OK;
}

uint32_t
bh_simulation_site_gpus(const struct bh_simulation_site *site)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < site->rack_count; i++)
        count += site->racks[i].nodes * site->racks[i].gpus_each;
    return count;
}

/* A node, then its GPUs. */
static void
next_of_rack(const struct bh_simulation_rack *rack, struct bh_simulation_cursor *cursor,
             struct bh_event *ret_event)
{
    if (cursor->in_node++ == 0)
        *ret_event = (struct bh_event){ .kind = BH_EV_NODE, .u.node = { { ++cursor->node }, true } };
    else
        *ret_event = (struct bh_event){ .kind = BH_EV_GPU,
                                        .u.gpu = { .gpu = { ++cursor->gpu },
                                                   .node = { cursor->node },
                                                   .model = rack->model,
                                                   .managed = true,
                                                   .mig_capable = rack->mig_capable } };
    if (cursor->in_node <= rack->gpus_each)
        return;
    cursor->in_node = 0;
    cursor->in_rack++;
}

bool
bh_simulation_site_next(const struct bh_simulation_site *site, struct bh_simulation_cursor *cursor,
                        struct bh_event *ret_event)
{
    while (cursor->rack < site->rack_count && cursor->in_rack == site->racks[cursor->rack].nodes) {
        cursor->in_rack = 0;
        cursor->rack++;
    }
    if (cursor->sku < site->sku_count)
        *ret_event = (struct bh_event){ .kind = BH_EV_SKU, .u.sku = site->skus[cursor->sku++] };
    else if (cursor->tenant < site->tenant_count)
        *ret_event = (struct bh_event){ .kind = BH_EV_TENANT, .u.tenant = site->tenants[cursor->tenant++] };
    else if (cursor->rack < site->rack_count)
        next_of_rack(&site->racks[cursor->rack], cursor, ret_event);
    else
        return false;
    return true;
}
