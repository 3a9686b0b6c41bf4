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

/* The strongest demand from `from` up to, not including, the first that is above
 * `other` too. */
static struct bh_separation
demands(const struct bh_engine *engine, uint32_t from, uint32_t other)
{
    struct bh_separation strongest = { BH_BOUNDARY_NONE, false };

    while (from && !bh_tenant_within(engine, from, other)) {
        const struct tenant *tenant = tenant_at(engine, from);

        strongest.boundary = bh_boundary_max(strongest.boundary, (enum bh_boundary)tenant->boundary);
        strongest.dedicated = strongest.dedicated || tenant->dedicated;
        from = tenant->parent;
    }
    return strongest;
}

struct bh_separation
bh_tenant_separation(const struct bh_engine *engine, uint32_t a, uint32_t b)
{
    struct bh_separation one = demands(engine, a, b), other = demands(engine, b, a);

    BH_ASSERT(a != 0);
    BH_ASSERT(b != 0);
    return (struct bh_separation){ bh_boundary_max(one.boundary, other.boundary),
                                   one.dedicated || other.dedicated };
}

enum bh_boundary
bh_tenant_boundary(const struct bh_engine *engine, uint32_t tenant)
{
    BH_ASSERT(tenant != 0);
    return demands(engine, tenant, 0).boundary;
}

uint32_t
bh_tenant_dedicated(const struct bh_engine *engine, uint32_t tenant)
{
    if (engine->core.dedicated == 0)
        return 0;
    while (tenant && !tenant_at(engine, tenant)->dedicated)
        tenant = tenant_at(engine, tenant)->parent;
    return tenant;
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
