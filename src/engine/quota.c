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

/* What claims of others will take within a tenant. */
static struct bh_wanted
claimed(const struct bh_search *search, uint32_t tenant, uint32_t sku)
{
    const struct bh_engine *engine = search->engine;
    struct bh_wanted sum = { 0 };

    if (engine->core.claim_count == 0 || search->past_claims)
        return sum;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_room_claim(search, i);
        const struct job *holder = job_at(engine, claim ? claim->job : 0);

        if (!claim || !bh_tenant_within(engine, tenant, holder->tenant))
            continue;
        sum.equivalent += claim->equivalent;
        sum.count += holder->sku == sku ? claim->count : 0;
    }
    return sum;
}

static void
add_freed(const struct bh_search *search, uint32_t lease, uint32_t tenant,
          struct bh_wanted *sum)
{
    struct bh_wanted held = bh_quota_of_lease(search->engine, lease);

    if (!bh_tenant_within(search->engine, tenant, held.tenant))
        return;
    sum->equivalent += held.equivalent;
    sum->count += held.sku == sum->sku ? held.count : 0;
}

struct bh_wanted
bh_quota_freed(const struct bh_search *search, uint32_t tenant, uint32_t sku)
{
    const struct bh_engine *engine = search->engine;
    struct bh_wanted sum = { .tenant = tenant, .sku = sku };

    if (!search->past_leaving) {
        for (uint32_t i = 0; i < search->gone_count; i++)
            add_freed(search, search->gone[i], tenant, &sum);
        return sum;
    }
    for (uint32_t slot = engine->core.leaving; slot; slot = lease_at(engine, slot)->next_leaving)
        add_freed(search, slot, tenant, &sum);
    for (uint32_t i = 0; i < search->gone_count; i++)
        if (!bh_room_is_leaving(engine, search->gone[i]))
            add_freed(search, search->gone[i], tenant, &sum);
    return sum;
}

/* One tenant's limits: the reason when they do not allow it. */
static bool
tenant_allows(const struct bh_search *search, const struct bh_wanted *wanted, uint32_t at,
              struct bh_reason *ret_why)
{
    const struct tenant *tenant = tenant_at(search->engine, at);
    uint64_t sku_id = sku_at(search->engine, wanted->sku)->id;
    struct bh_wanted others = claimed(search, at, wanted->sku), freed = { 0 };
    uint32_t row = row_of(tenant, sku_id);
    uint64_t used;

    if (tenant->limit == BH_UNLIMITED && row == BH_TENANT_SKUS_MAX)
        return true;
    if (search->gone_count || search->past_leaving)
        freed = bh_quota_freed(search, at, wanted->sku);
    *ret_why = (struct bh_reason){ .tenant = { (uint32_t)tenant->id } };
    used = tenant->used - freed.equivalent;
    if (tenant->limit != BH_UNLIMITED
        && used + others.equivalent + wanted->equivalent > tenant->limit) {
        ret_why->code = BH_REASON_QUOTA_GPU;
        ret_why->limit = tenant->limit;
        ret_why->used = used;
        ret_why->wanted = wanted->equivalent;
        return false;
    }
    used = row < BH_TENANT_SKUS_MAX ? tenant->sku_used[row] - freed.count : 0;
    if (row == BH_TENANT_SKUS_MAX
        || used + others.count + wanted->count <= tenant->sku_limits[row])
        return true;
    ret_why->code = BH_REASON_QUOTA_SKU;
    ret_why->sku.v = (uint32_t)sku_id;
    ret_why->limit = tenant->sku_limits[row];
    ret_why->used = used;
    ret_why->wanted = wanted->count;
    return false;
}

bool
bh_quota_allows(const struct bh_search *search, const struct bh_wanted *wanted,
                struct bh_reason *ret_why, uint32_t *ret_tenant)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        *ret_tenant = at;
        if (!tenant_allows(search, wanted, at, ret_why))
            return false;
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
bh_quota_to_resume(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);
    struct bh_wanted wanted = { .tenant = lease->tenant, .count = lease->count,
                                .sku = job_at(engine, lease->job)->sku };

    for (uint32_t i = 0; i < lease->count; i++)
        wanted.equivalent += bh_quota_equivalent(lease->places[i].profile, 1);
    return wanted;
}

struct bh_wanted
bh_quota_of_lease(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);

    if (lease->parts[0])
        return bh_quota_to_resume(engine, slot);
    return (struct bh_wanted){ .tenant = lease->tenant,
                               .sku = job_at(engine, lease->job)->sku };
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
