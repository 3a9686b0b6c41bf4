#include "engine/account/quota.h"

#include <string.h>

#include "base/assert.h"
#include "engine/account/tenant.h"
#include "engine/account/usage.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

uint64_t
bh_quota_equivalent(uint32_t profile, uint32_t count)
{
    return bh_parts_equivalent(bh_profile_parts((bh_profile_id){ profile })) * count;
}

uint64_t
bh_quota_least(const struct bh_engine *engine, uint32_t slot, uint32_t count)
{
    const struct sku *sku = sku_at(engine, slot);
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < sku->model_count; i++) {
        uint64_t one = (uint64_t)sku->equivalents[i] * count;

        least = one < least ? one : least;
    }
    return sku->model_count ? least : 0;
}

bool
bh_quota_concerns(const struct bh_engine *engine, const struct quota *quota, const struct bh_wanted *wanted)
{
    if (quota->scope == BH_QUOTA_MODEL)
        return quota->of == wanted->model;
    return quota->of == sku_at(engine, wanted->sku)->id;
}

uint64_t
bh_quota_counted(const struct bh_engine *engine, const struct quota *quota, const struct bh_wanted *wanted)
{
    if (!bh_quota_concerns(engine, quota, wanted))
        return 0;
    return quota->scope == BH_QUOTA_MODEL ? wanted->equivalent : wanted->count;
}

/* ---- what is used ---- */

/* Whether the use of other tenants can decide which jobs may be preempted, or can make another limit the
 * first that is met while a job leaves anyway. */
static bool
quota_any_preemptible(const struct bh_engine *engine)
{
    uint32_t jobs = engine->core.leaving != 0;

    for (uint32_t i = 0; i <= BH_PRIORITIES; i++)
        jobs += engine->core.preemptible_jobs[i];
    return jobs > 0;
}

/* Each tenant's share of the change: `sign` 1 or -1. */
static void
quota_count(struct bh_engine *engine, const struct bh_wanted *wanted, int64_t sign)
{
    uint64_t cost = sku_at(engine, wanted->sku)->price * wanted->count;

    BH_ASSERT(sku_at(engine, wanted->sku)->id != 0 && wanted->model < MODELS_MAX);
    BH_ASSERT(sign > 0 || engine->core.used_models[wanted->model] >= wanted->equivalent);
    BH_ASSERT(engine->core.used >= engine->core.used_models[wanted->model]);
    if (sign < 0 || quota_any_preemptible(engine))
        bh_wake_below(engine, wanted->tenant);
    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        struct tenant *tenant = tenant_at(engine, at);

        bh_usage_update(engine, at);
        BH_ASSERT(tenant->id != 0 && tenant->parent != at && tenant->used >= tenant->used_own);
        BH_ASSERT(tenant->children > 0 || tenant->used == tenant->used_own);
        BH_ASSERT(tenant->used <= engine->core.used && tenant->quota_count <= BH_TENANT_QUOTAS_MAX);
        BH_ASSERT(sign > 0 || tenant->used >= wanted->equivalent);
        tenant->used += (uint64_t)sign * wanted->equivalent;
        tenant->used_own += at == wanted->tenant ? (uint64_t)sign * wanted->equivalent : 0;
        tenant->cost += (uint64_t)sign * cost;
        for (uint32_t i = 0; i < tenant->quota_count; i++) {
            struct quota *quota = &tenant->quotas[i];
            uint64_t amount = bh_quota_counted(engine, quota, wanted);

            BH_ASSERT(sign > 0 || quota->used >= amount);
            quota->used += (uint64_t)sign * amount;
        }
    }
    engine->core.used += (uint64_t)sign * wanted->equivalent;
    engine->core.used_models[wanted->model] += (uint64_t)sign * wanted->equivalent;
}

void
bh_quota_charge(struct bh_engine *engine, const struct bh_wanted *wanted)
{
    quota_count(engine, wanted, 1);
}

void
bh_quota_release(struct bh_engine *engine, const struct bh_wanted *wanted)
{
    quota_count(engine, wanted, -1);
}

/* ---- leases ---- */

struct bh_wanted
bh_quota_of_claim(const struct bh_engine *engine, const struct claim *claim)
{
    const struct job *job = job_at(engine, claim->job);
    uint32_t gpu = gpu_find(engine, claim->placements[0].gpu);

    return (struct bh_wanted){ .tenant = job->tenant,
                               .sku = job->sku,
                               .count = claim->count,
                               .equivalent = claim->equivalent,
                               .principal = job->principal,
                               .model = gpu_at(engine, gpu)->model };
}

struct bh_wanted
bh_quota_to_resume(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    struct bh_wanted wanted = {
        .tenant = lease->tenant, .count = lease->count, .sku = job->sku, .principal = job->principal
    };

    wanted.model = gpu_at(engine, lease->parts[0] ? partition_at(engine, lease->parts[0])->gpu
                                                  : gpu_find(engine, lease->placements[0].gpu))
                       ->model;
    for (uint32_t i = 0; i < lease->count; i++)
        wanted.equivalent += bh_quota_equivalent(lease->placements[i].profile, 1);
    return wanted;
}

struct bh_wanted
bh_quota_to_resume_all(const struct bh_engine *engine, uint32_t job)
{
    struct bh_wanted sum = { .tenant = job_at(engine, job)->tenant, .sku = job_at(engine, job)->sku };
    uint32_t count = 0;
    uint64_t equivalent = 0;

    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;) {
        sum = bh_quota_to_resume(engine, at);
        count += sum.count;
        equivalent += sum.equivalent;
    }
    sum.count = count;
    sum.equivalent = equivalent;
    return sum;
}

struct bh_wanted
bh_quota_of_lease(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);

    if (lease->parts[0])
        return bh_quota_to_resume(engine, slot);
    return (struct bh_wanted){ .tenant = lease->tenant, .sku = job_at(engine, lease->job)->sku };
}

void
bh_quota_recount(struct bh_engine *engine)
{
    bh_wake_below(engine, 0);
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_TENANT, &at);) {
        struct tenant *tenant = tenant_at(engine, at);

        bh_usage_update(engine, at);
        tenant->used = tenant->used_own = tenant->cost = 0;
        tenant->running = tenant->pending = 0;
        for (uint32_t i = 0; i < tenant->quota_count; i++)
            tenant->quotas[i].used = 0;
    }
    engine->core.used = 0;
    memset(engine->core.used_models, 0, sizeof(engine->core.used_models));
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_LEASE, &at);) {
        struct bh_wanted held = bh_quota_of_lease(engine, at);

        bh_quota_charge(engine, &held);
    }
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_JOB, &at);) {
        const struct job *job = job_at(engine, at);

        if (job->state < BH_JOB_COMPLETED)
            bh_tenant_count(engine, job->tenant, job->lease != 0, job->lease == 0);
    }
}
