#include "engine/placement/filter.h"

#include "engine/account/tenant.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"

uint64_t
bh_filter_counts(const struct bh_engine *engine, const struct bh_filter *filter, const struct bh_wanted *held)
{
    if (filter->tenant && !bh_tenant_within(engine, filter->tenant, held->tenant))
        return 0;
    if (filter->principal && filter->principal != held->principal)
        return 0;
    return filter->quota ? bh_quota_counted(engine, filter->quota, held) : held->equivalent;
}

/* What claims of others will take. */
static uint64_t
claimed(const struct bh_search *search, const struct bh_filter *filter)
{
    const struct bh_engine *engine = search->engine;
    uint64_t sum = 0;

    if (engine->core.claim_count == 0 || search->past_claims)
        return 0;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(search, i);
        struct bh_wanted taken;

        if (!claim)
            continue;
        taken = bh_quota_of_claim(engine, claim);
        sum += bh_filter_counts(engine, filter, &taken);
    }
    return sum;
}

uint64_t
bh_filter_freed(const struct bh_search *search, const struct bh_filter *filter)
{
    const struct bh_engine *engine = search->engine;
    uint64_t sum = 0;

    for (uint32_t at = search->past_leaving ? engine->core.leaving : 0; at;
         at = lease_at(engine, at)->next_leaving) {
        struct bh_wanted held;

        if (filter->tenant && !bh_tenant_within(engine, filter->tenant, lease_at(engine, at)->tenant))
            continue;
        held = bh_quota_of_lease(engine, at);
        sum += bh_filter_counts(engine, filter, &held);
    }
    for (uint32_t i = 0; i < search->gone_count; i++)
        for (uint32_t at = 0; (at = bh_gang_next(engine, search->gone[i], at)) != 0;) {
            struct bh_wanted held = bh_quota_of_lease(engine, at);

            if (!search->past_leaving || !bh_capacity_is_leaving(engine, at))
                sum += bh_filter_counts(engine, filter, &held);
        }
    return sum;
}

bool
bh_filter_fits(const struct bh_search *search, const struct bh_filter *filter, struct bh_reason *why)
{
    why->used -= bh_filter_freed(search, filter);
    return why->used + claimed(search, filter) + why->wanted <= why->limit;
}
