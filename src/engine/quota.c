#include "engine/quota.h"

#include <string.h>

#include "base/assert.h"
#include "engine/slots.h"
#include "engine/tenant.h"

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
        uint64_t one = bh_quota_equivalent(sku->profiles[i], count);

        least = one < least ? one : least;
    }
    return sku->model_count ? least : 0;
}

/* The tenant's row for a SKU, or BH_TENANT_SKUS_MAX. */
static uint32_t
row_of(const struct tenant *tenant, uint64_t sku_id)
{
    for (uint32_t i = 0; i < tenant->sku_count; i++)
        if (tenant->sku_ids[i] == sku_id)
            return i;
    return BH_TENANT_SKUS_MAX;
}

void
bh_quota_take(struct bh_engine *engine, const struct bh_wanted *wanted)
{
    uint64_t sku_id = sku_at(engine, wanted->sku)->id;

    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        struct tenant *tenant = tenant_at(engine, at);
        uint32_t row = row_of(tenant, sku_id);

        tenant->used += wanted->equivalent;
        if (row < BH_TENANT_SKUS_MAX)
            tenant->sku_used[row] += wanted->count;
    }
}

void
bh_quota_give(struct bh_engine *engine, const struct bh_wanted *wanted)
{
    uint64_t sku_id = sku_at(engine, wanted->sku)->id;

    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        struct tenant *tenant = tenant_at(engine, at);
        uint32_t row = row_of(tenant, sku_id);

        BH_ASSERT(tenant->used >= wanted->equivalent);
        tenant->used -= wanted->equivalent;
        if (row == BH_TENANT_SKUS_MAX)
            continue;
        BH_ASSERT(tenant->sku_used[row] >= wanted->count);
        tenant->sku_used[row] -= wanted->count;
    }
}

/* What claims of jobs other than `job` will take within a tenant. */
static struct bh_wanted
claimed(const struct bh_engine *engine, uint32_t tenant, uint32_t sku, uint32_t job)
{
    struct bh_wanted sum = { 0 };

    if (engine->core.claim_count == 0)
        return sum;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];
        const struct job *holder = job_at(engine, claim->job);

        if (!claim->job || claim->job == job
            || !bh_tenant_within(engine, tenant, holder->tenant))
            continue;
        sum.equivalent += claim->equivalent;
        sum.count += holder->sku == sku ? claim->count : 0;
    }
    return sum;
}

bool
bh_quota_allows(const struct bh_engine *engine, const struct bh_wanted *wanted, uint32_t job,
                struct bh_reason *ret_why, uint32_t *ret_tenant)
{
    uint64_t sku_id = sku_at(engine, wanted->sku)->id;

    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        const struct tenant *tenant = tenant_at(engine, at);
        struct bh_wanted others = claimed(engine, at, wanted->sku, job);
        uint32_t row = row_of(tenant, sku_id);

        *ret_tenant = at;
        if (tenant->limit != BH_UNLIMITED
            && tenant->used + others.equivalent + wanted->equivalent > tenant->limit) {
            *ret_why = (struct bh_reason){ .code = BH_REASON_QUOTA_GPU,
                                           .tenant = { (uint32_t)tenant->id },
                                           .limit = tenant->limit, .used = tenant->used,
                                           .wanted = wanted->equivalent };
            return false;
        }
        if (row < BH_TENANT_SKUS_MAX
            && (uint64_t)tenant->sku_used[row] + others.count + wanted->count
                   > tenant->sku_limits[row]) {
            *ret_why = (struct bh_reason){ .code = BH_REASON_QUOTA_SKU,
                                           .tenant = { (uint32_t)tenant->id },
                                           .sku = { (uint32_t)sku_id },
                                           .limit = tenant->sku_limits[row],
                                           .used = tenant->sku_used[row],
                                           .wanted = wanted->count };
            return false;
        }
    }
    return true;
}

bool
bh_quota_ever(const struct bh_engine *engine, const struct bh_wanted *wanted,
              struct bh_reason *ret_why)
{
    uint64_t sku_id = sku_at(engine, wanted->sku)->id;

    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        const struct tenant *tenant = tenant_at(engine, at);
        uint32_t row = row_of(tenant, sku_id);

        *ret_why = (struct bh_reason){ .code = BH_REASON_NEVER_QUOTA,
                                       .tenant = { (uint32_t)tenant->id } };
        if (tenant->limit != BH_UNLIMITED && wanted->equivalent > tenant->limit) {
            ret_why->limit = tenant->limit;
            ret_why->wanted = wanted->equivalent;
            return false;
        }
        if (row < BH_TENANT_SKUS_MAX && wanted->count > tenant->sku_limits[row]) {
            ret_why->sku.v = (uint32_t)sku_id;
            ret_why->limit = tenant->sku_limits[row];
            ret_why->wanted = wanted->count;
            return false;
        }
    }
    *ret_why = (struct bh_reason){ 0 };
    return true;
}

bool
bh_quota_guaranteed(const struct bh_engine *engine, const struct bh_wanted *wanted)
{
    bool covered = false;

    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        const struct tenant *tenant = tenant_at(engine, at);

        if (tenant->guarantee == 0)
            continue;
        if (tenant->used + wanted->equivalent > tenant->guarantee)
            return false;
        covered = true;
    }
    return covered;
}

struct bh_wanted
bh_quota_of_lease(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);
    struct bh_wanted held = { .tenant = lease->tenant, .sku = job_at(engine, lease->job)->sku };

    if (!lease->parts[0])
        return held;
    held.count = lease->count;
    for (uint32_t i = 0; i < lease->count; i++)
        held.equivalent += bh_quota_equivalent(lease->places[i].profile, 1);
    return held;
}

void
bh_quota_recount(struct bh_engine *engine)
{
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_TENANT, &at);) {
        struct tenant *tenant = tenant_at(engine, at);

        tenant->used = 0;
        tenant->running = tenant->pending = 0;
        memset(tenant->sku_used, 0, sizeof(tenant->sku_used));
    }
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_LEASE, &at);) {
        struct bh_wanted held = bh_quota_of_lease(engine, at);

        bh_quota_take(engine, &held);
    }
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_JOB, &at);) {
        const struct job *job = job_at(engine, at);

        if (job->state < BH_JOB_COMPLETED)
            bh_tenant_count(engine, job->tenant, job->lease != 0, job->lease == 0);
    }
}
