#include "engine/placement/limit.h"

#include "base/assert.h"
#include "engine/placement/guarantee.h"
#include "engine/state/slots.h"

/* What one principal holds within a tenant. */
static uint64_t
limit_used_by(const struct bh_engine *engine, const struct bh_filter *filter)
{
    uint64_t sum = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        struct bh_wanted held = bh_quota_of_lease(engine, slot);

        sum += bh_filter_counts(engine, filter, &held);
    }
    return sum;
}

/* ---- limits ---- */

static bool
limit_quota_allows(const struct bh_search *search, const struct bh_wanted *wanted, uint32_t at,
                   const struct quota *quota, struct bh_reason *ret_why)
{
    struct bh_filter filter = { .tenant = at, .quota = quota };

    if (quota->limit == BH_UNLIMITED || !bh_quota_concerns(search->engine, quota, wanted))
        return true;
    *ret_why = (struct bh_reason){ .code = quota->scope == BH_QUOTA_SKU ? BH_REASON_QUOTA_SKU
                                                                        : BH_REASON_QUOTA_MODEL,
                                   .tenant = { (uint32_t)tenant_at(search->engine, at)->id },
                                   .limit = quota->limit,
                                   .used = quota->used,
                                   .wanted = bh_quota_counted(search->engine, quota, wanted) };
    if (quota->scope == BH_QUOTA_SKU)
        ret_why->sku.v = quota->of;
    else
        ret_why->model = quota->of;
    return bh_filter_fits(search, &filter, ret_why);
}

static bool
limit_user_allows(const struct bh_search *search, const struct bh_wanted *wanted, uint32_t at,
                  struct bh_reason *ret_why)
{
    const struct tenant *tenant = tenant_at(search->engine, at);
    struct bh_filter filter = { .tenant = at, .principal = wanted->principal };

    if (tenant->user_limit == 0 || wanted->principal == 0)
        return true;
    *ret_why = (struct bh_reason){ .code = BH_REASON_QUOTA_USER,
                                   .tenant = { (uint32_t)tenant->id },
                                   .limit = tenant->user_limit,
                                   .used = limit_used_by(search->engine, &filter),
                                   .wanted = wanted->equivalent };
    return bh_filter_fits(search, &filter, ret_why);
}

/* One tenant's limits: the reason when they do not allow it. */
static bool
limit_tenant_allows(const struct bh_search *search, const struct bh_wanted *wanted, uint32_t at,
                    struct bh_reason *ret_why)
{
    const struct tenant *tenant = tenant_at(search->engine, at);

    BH_ASSERT(tenant->parent != at && tenant->quota_count <= BH_TENANT_QUOTAS_MAX);
    BH_ASSERT(tenant->used <= search->engine->core.used);
    if (tenant->limit != BH_UNLIMITED) {
        *ret_why = (struct bh_reason){ .code = BH_REASON_QUOTA_GPU,
                                       .tenant = { (uint32_t)tenant->id },
                                       .limit = tenant->limit,
                                       .used = tenant->used,
                                       .wanted = wanted->equivalent };
        if (!bh_filter_fits(search, &(struct bh_filter){ .tenant = at }, ret_why))
            return false;
    }
    for (uint32_t i = 0; i < tenant->quota_count; i++)
        if (!limit_quota_allows(search, wanted, at, &tenant->quotas[i], ret_why))
            return false;
    return limit_user_allows(search, wanted, at, ret_why);
}

bool
bh_quota_allows(const struct bh_search *search, const struct bh_wanted *wanted, struct bh_reason *ret_why,
                uint32_t *ret_tenant)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        *ret_tenant = at;
        if (!limit_tenant_allows(search, wanted, at, ret_why))
            return false;
    }
    *ret_tenant = 0;
    return bh_guarantee_lends(search, wanted, ret_why);
}

bool
bh_quota_permits(const struct bh_search *search, const struct bh_wanted *wanted)
{
    struct bh_reason why;
    uint32_t whose;

    return bh_quota_allows(search, wanted, &why, &whose);
}

/* Whether one tenant's limits are short of it. */
static bool
limit_is_short(const struct bh_engine *engine, const struct bh_wanted *wanted, uint32_t at,
               struct bh_limit_shortage *ret_short)
{
    const struct tenant *tenant = tenant_at(engine, at);

    BH_ASSERT(tenant->parent != at && tenant->quota_count <= BH_TENANT_QUOTAS_MAX);
    *ret_short = (struct bh_limit_shortage){ .filter = { .tenant = at } };
    if (tenant->limit != BH_UNLIMITED && tenant->used + wanted->equivalent > tenant->limit) {
        ret_short->by = tenant->used + wanted->equivalent - tenant->limit;
        return true;
    }
    for (uint32_t i = 0; i < tenant->quota_count; i++) {
        const struct quota *quota = &tenant->quotas[i];
        uint64_t more = bh_quota_counted(engine, quota, wanted);

        if (quota->limit == BH_UNLIMITED || more == 0 || quota->used + more <= quota->limit)
            continue;
        ret_short->filter.quota = quota;
        ret_short->by = quota->used + more - quota->limit;
        return true;
    }
    return false;
}

bool
bh_quota_short(const struct bh_engine *engine, const struct bh_wanted *wanted,
               struct bh_limit_shortage *ret_short)
{
    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent)
        if (limit_is_short(engine, wanted, at, ret_short))
            return true;
    return false;
}

/* Whether one tenant's limits would, on an empty fleet. */
static bool
limit_ever_within(const struct bh_engine *engine, const struct tenant *tenant, const struct bh_wanted *wanted,
                  struct bh_reason *ret_why)
{
    *ret_why = (struct bh_reason){ .code = BH_REASON_NEVER_QUOTA,
                                   .tenant = { (uint32_t)tenant->id },
                                   .limit = tenant->limit,
                                   .wanted = wanted->equivalent };
    if (tenant->limit != BH_UNLIMITED && wanted->equivalent > tenant->limit)
        return false;
    ret_why->limit = tenant->user_limit;
    if (tenant->user_limit && wanted->equivalent > tenant->user_limit)
        return false;
    for (uint32_t i = 0; i < tenant->quota_count; i++) {
        const struct quota *quota = &tenant->quotas[i];

        ret_why->limit = quota->limit;
        ret_why->wanted = bh_quota_counted(engine, quota, wanted);
        ret_why->sku.v = quota->scope == BH_QUOTA_SKU ? quota->of : 0;
        ret_why->model = quota->scope == BH_QUOTA_MODEL ? quota->of : 0;
        if (quota->limit != BH_UNLIMITED && ret_why->wanted > quota->limit)
            return false;
    }
    return true;
}

bool
bh_quota_ever(const struct bh_engine *engine, const struct bh_wanted *wanted, struct bh_reason *ret_why)
{
    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent)
        if (!limit_ever_within(engine, tenant_at(engine, at), wanted, ret_why))
            return false;
    *ret_why = (struct bh_reason){ 0 };
    return true;
}
