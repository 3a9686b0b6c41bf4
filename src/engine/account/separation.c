#include "engine/account/separation.h"

#include "base/assert.h"
#include "engine/account/tenant.h"
#include "engine/state/slots.h"

/* The strongest demand from `from` up to, not including, the first that is above
 * `other` too. */
static struct bh_separation
separation_demands(const struct bh_engine *engine, uint32_t from, uint32_t other)
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
bh_separation_between(const struct bh_engine *engine, uint32_t a, uint32_t b)
{
    struct bh_separation one = separation_demands(engine, a, b), other = separation_demands(engine, b, a);

    BH_ASSERT(a != 0);
    BH_ASSERT(b != 0);
    return (struct bh_separation){ bh_boundary_max(one.boundary, other.boundary),
                                   one.dedicated || other.dedicated };
}

enum bh_boundary
bh_separation_boundary(const struct bh_engine *engine, uint32_t tenant)
{
    BH_ASSERT(tenant != 0);
    return separation_demands(engine, tenant, 0).boundary;
}

uint32_t
bh_separation_dedicated(const struct bh_engine *engine, uint32_t tenant)
{
    if (engine->core.dedicated == 0)
        return 0;
    while (tenant && !tenant_at(engine, tenant)->dedicated)
        tenant = tenant_at(engine, tenant)->parent;
    return tenant;
}
