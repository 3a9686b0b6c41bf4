#include "engine/account/tenant.h"

#include "base/assert.h"
#include "engine/state/slots.h"

bool
bh_tenant_within(const struct bh_engine *engine, uint32_t ancestor, uint32_t tenant)
{
    while (tenant && tenant != ancestor) {
        BH_ASSERT(tenant_at(engine, tenant)->parent != tenant);
        tenant = tenant_at(engine, tenant)->parent;
    }
    return tenant != 0;
}

bool
bh_tenant_leaving(const struct bh_engine *engine, uint32_t tenant)
{
    return tenant_at(engine, tenant)->removed;
}

bool
bh_tenant_withholds(const struct tenant *tenant)
{
    bool any = tenant->withhold > 0 || tenant->expected > 0;

    for (uint32_t i = 0; i < tenant->quota_count; i++)
        any = any || tenant->quotas[i].withhold > 0;
    return any;
}

void
bh_tenant_count(struct bh_engine *engine, uint32_t tenant, int32_t running, int32_t pending)
{
    for (; tenant; tenant = tenant_at(engine, tenant)->parent) {
        struct tenant *at = tenant_at(engine, tenant);

        BH_ASSERT(at->id != 0 && at->parent != tenant && at->pending <= engine->core.pending + 1);
        BH_ASSERT(at->children > 0 || at->running + at->pending <= at->jobs);
        at->running += (uint32_t)running;
        at->pending += (uint32_t)pending;
        BH_ASSERT((int32_t)at->running >= 0);
        BH_ASSERT((int32_t)at->pending >= 0);
    }
}
