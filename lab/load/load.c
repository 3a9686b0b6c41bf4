#include "lab/load/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/vec.h"
#include "model/geometry.h"

void
bh_load_fini(struct bh_load *load)
{
    free(load->skus);
    free(load->tenants);
    free(load->names);
    free(load->jobs);
    free(load->workloads);
    *load = (struct bh_load){ 0 };
}

enum { TENANTS_MAX = 1 << 20, JOBS_MAX = 1 << 28 };

/* What GPUs are divided into. */
static const char *const divided[] = { "1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb" };

void
bh_load_set_rack(struct bh_load *load, uint32_t nodes, uint32_t gpus_each)
{
    load->rack =
        (struct bh_simulation_rack){ .nodes = nodes, .gpus_each = gpus_each, .model = BH_GPU_H100_80GB };
    free(load->skus);
    load->skus = calloc(1 + BH_COUNT(divided), sizeof load->skus[0]);
    BH_ASSERT(load->skus);
    load->skus[0].sku.v = 1;
    load->skus[0].model_count = 1;
    load->skus[0].models[0].model = BH_GPU_H100_80GB;
    load->skus[0].models[0].profile = BH_PROFILE_WHOLE.v;
    load->sku_count = 1;
}

void
bh_load_divide_rack(struct bh_load *load)
{
    BH_ASSERT(load->sku_count == 1);
    load->rack.mig_capable = true;
    for (; load->sku_count <= BH_COUNT(divided); load->sku_count++) {
        struct bh_ev_sku *sku = &load->skus[load->sku_count];

        *sku = (struct bh_ev_sku){ .sku = { load->sku_count + 1 }, .grade = BH_GRADE_C, .model_count = 1 };
        sku->models[0].model = BH_GPU_H100_80GB;
        sku->models[0].profile = bh_profile_find(BH_GPU_H100_80GB, divided[load->sku_count - 1])->id.v;
    }
}

uint32_t
bh_load_gpus(const struct bh_load *load)
{
    return load->rack.nodes * load->rack.gpus_each;
}

struct bh_ev_tenant *
bh_load_add_tenant(struct bh_load *load, const char *name, bh_tenant_id parent)
{
    size_t count = load->tenant_count + 1u;
    bool fits = bh_vec_reserve(&load->tenants, &load->tenant_capacity, count, TENANTS_MAX)
                && bh_vec_reserve(&load->names, &load->name_capacity, count, TENANTS_MAX);
    struct bh_ev_tenant *tenant;

    BH_ASSERT(fits);
    snprintf(load->names[load->tenant_count], sizeof load->names[0], "%s", name);
    tenant = &load->tenants[load->tenant_count++];
    *tenant =
        (struct bh_ev_tenant){ .tenant = { load->tenant_count }, .parent = parent, .limit = BH_UNLIMITED };
    tenant->kind = parent.v ? BH_TENANT_PROJECT : BH_TENANT_ORGANIZATION;
    return tenant;
}

bh_tenant_id
bh_load_find_tenant(const struct bh_load *load, const char *name)
{
    for (uint32_t i = 0; i < load->tenant_count; i++)
        if (strcmp(load->names[i], name) == 0)
            return load->tenants[i].tenant;
    return (bh_tenant_id){ 0 };
}

void
bh_load_add(struct bh_load *load, const struct bh_simulation_job *job)
{
    size_t count = load->job_count + 1u;
    bool fits = bh_vec_reserve(&load->jobs, &load->job_capacity, count, JOBS_MAX)
                && bh_vec_reserve(&load->workloads, &load->workload_capacity, count, JOBS_MAX);

    BH_ASSERT(fits);
    load->workloads[load->job_count] = load->workload_count++;
    load->jobs[load->job_count++] = *job;
}

struct sorted {
    struct bh_simulation_job job;
    uint32_t workload, at;
};

static int
load_compare(const void *a, const void *b)
{
    const struct sorted *one = a, *other = b;

    if (one->job.submit_ns != other->job.submit_ns)
        return one->job.submit_ns < other->job.submit_ns ? -1 : 1;
    return one->at < other->at ? -1 : one->at > other->at;
}

void
bh_load_sort(struct bh_load *load)
{
    struct sorted *rows = calloc(load->job_count + 1u, sizeof *rows);

    BH_ASSERT(rows);
    for (uint32_t i = 0; i < load->job_count; i++)
        rows[i] = (struct sorted){ load->jobs[i], load->workloads[i], i };
    qsort(rows, load->job_count, sizeof *rows, load_compare);
    for (uint32_t i = 0; i < load->job_count; i++) {
        load->jobs[i] = rows[i].job;
        load->workloads[i] = rows[i].workload;
    }
    free(rows);
}

static bh_part_ns
load_work_of(const struct bh_simulation_job *job)
{
    return (bh_part_ns)job->count * bh_simulation_job_members(job) * job->work_ns;
}

bh_part_ns
bh_load_demand(const struct bh_load *load, uint32_t tenant)
{
    bh_part_ns sum = 0;

    for (uint32_t i = 0; i < load->job_count; i++)
        if (load->jobs[i].tenant.v == tenant + 1)
            sum += load_work_of(&load->jobs[i]);
    return sum;
}

bh_part_ns
bh_load_total_demand(const struct bh_load *load)
{
    bh_part_ns sum = 0;

    for (uint32_t i = 0; i < load->job_count; i++)
        sum += load_work_of(&load->jobs[i]);
    return sum;
}

bh_rc
bh_load_scale(struct bh_load *load, uint32_t permille, struct bh_err *err)
{
    bh_part_ns span_ns = bh_load_total_demand(load) * 1000 / permille / bh_load_gpus(load);
    uint64_t last_ns = load->job_count ? load->jobs[load->job_count - 1].submit_ns : 0;

    if (last_ns == 0)
        return bh_err_set(err, BH_INVALID, "all jobs are submitted at once: no load to scale");
    for (uint32_t i = 0; i < load->job_count; i++)
        load->jobs[i].submit_ns = (uint64_t)(load->jobs[i].submit_ns * span_ns / last_ns);
    return BH_OK;
}

void
bh_load_guarantee(struct bh_load *load, uint32_t permille)
{
    bh_part_ns total = bh_load_total_demand(load);

    for (uint32_t i = 0; i < load->tenant_count && total > 0; i++) {
        bh_part_ns demand = bh_load_demand(load, i);

        load->tenants[i].guarantee =
            (uint64_t)(demand * BH_GPU_PARTS * bh_load_gpus(load) / total * permille / 1000);
        load->tenants[i].weight = 1 + (uint32_t)(demand * (BH_WEIGHT_MAX - 1) / total);
    }
}

struct bh_simulation_plan
bh_load_plan(const struct bh_load *load)
{
    return (struct bh_simulation_plan){
        .site = { .racks = &load->rack,
                  .rack_count = 1,
                  .skus = load->skus,
                  .sku_count = load->sku_count,
                  .tenants = load->tenants,
                  .tenant_count = load->tenant_count },
        .jobs = load->jobs,
        .job_count = load->job_count,
        .settings = { .order = BH_ORDER_FIFO, .backfill = true },
    };
}
