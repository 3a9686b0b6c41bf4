#include "engine/way.h"

#include <string.h>

#include "base/assert.h"
#include "engine/gang.h"
#include "engine/slots.h"

/* A job's link is that of its first lease, so that jobs that wait need none. */
static struct way *
way_at(const struct bh_engine *engine, uint32_t lease)
{
    return (struct way *)bh_block_at(engine, engine->hints.way_offset) + lease;
}

static void
append(struct bh_engine *engine, uint32_t slot)
{
    struct tenant_hint *tenant = bh_tenant_hint(engine, job_at(engine, slot)->tenant);
    uint32_t lease = job_at(engine, slot)->lease;

    *way_at(engine, lease) = (struct way){ .prev = tenant->last,
                                           .since_ns = engine->core.now_ns };
    if (tenant->last)
        way_at(engine, job_at(engine, tenant->last)->lease)->next = slot;
    else
        tenant->first = slot;
    tenant->last = slot;
}

static void
take_out(struct bh_engine *engine, uint32_t slot)
{
    struct tenant_hint *tenant = bh_tenant_hint(engine, job_at(engine, slot)->tenant);
    const struct way *way = way_at(engine, job_at(engine, slot)->lease);

    if (way->prev)
        way_at(engine, job_at(engine, way->prev)->lease)->next = way->next;
    else
        tenant->first = way->next;
    if (way->next)
        way_at(engine, job_at(engine, way->next)->lease)->prev = way->prev;
    else
        tenant->last = way->prev;
}

static bool
may_make_way(const struct bh_engine *engine, uint32_t slot)
{
    return job_at(engine, slot)->contract != BH_CONTRACT_NEVER;
}

void
bh_way_enter(struct bh_engine *engine, uint32_t slot)
{
    BH_ASSERT(job_at(engine, slot)->lease != 0);
    if (may_make_way(engine, slot))
        append(engine, slot);
}

void
bh_way_leave(struct bh_engine *engine, uint32_t slot)
{
    BH_ASSERT(job_at(engine, slot)->lease != 0);
    if (may_make_way(engine, slot))
        take_out(engine, slot);
}

/* Whether a member runs already. */
static bool
has_begun(const struct bh_engine *engine, uint32_t slot)
{
    for (uint32_t at = 0; (at = bh_gang_next(engine, slot, at)) != 0;)
        if (lease_at(engine, at)->state == LEASE_RUNNING)
            return true;
    return false;
}

void
bh_way_runs(struct bh_engine *engine, uint32_t slot)
{
    if (!may_make_way(engine, slot) || has_begun(engine, slot))
        return;
    take_out(engine, slot);
    append(engine, slot);
}

uint32_t
bh_way_first(const struct bh_engine *engine, uint32_t tenant)
{
    return bh_tenant_hint(engine, tenant)->first;
}

uint32_t
bh_way_next(const struct bh_engine *engine, uint32_t slot)
{
    return way_at(engine, job_at(engine, slot)->lease)->next;
}

uint64_t
bh_way_since_ns(const struct bh_engine *engine, uint32_t slot)
{
    return way_at(engine, job_at(engine, slot)->lease)->since_ns;
}

/* Whether it belongs where it stands, behind `last`. */
static bool
fits_behind(const struct bh_engine *engine, uint32_t slot, uint32_t last)
{
    const struct way *way = way_at(engine, job_at(engine, slot)->lease);

    for (uint32_t at = 0; (at = bh_gang_next(engine, slot, at)) != 0;)
        if (lease_at(engine, at)->state == LEASE_RUNNING
            && lease_at(engine, at)->since_ns < way->since_ns)
            return false;
    return way->prev == last && may_make_way(engine, slot)
           && (!last || bh_way_since_ns(engine, last) <= way->since_ns);
}

bool
bh_way_is_whole(const struct bh_engine *engine, uint32_t tenant, uint32_t jobs)
{
    uint32_t last = 0;

    for (uint32_t at = bh_way_first(engine, tenant); at; at = bh_way_next(engine, at)) {
        if (jobs-- == 0 || job_at(engine, at)->tenant != tenant || !job_at(engine, at)->lease
            || !fits_behind(engine, at, last))
            return false;
        last = at;
    }
    return jobs == 0 && bh_tenant_hint(engine, tenant)->last == last;
}

void
bh_way_copy(struct bh_engine *engine, const struct bh_engine *from)
{
    engine->hints.news = from->hints.news;
    memcpy(way_at(engine, 0), way_at(from, 0),
           ((size_t)from->tables[TABLE_LEASE].high + 1) * sizeof(struct way));
    memcpy(bh_tenant_hint(engine, 0), bh_tenant_hint(from, 0),
           ((size_t)from->tables[TABLE_TENANT].high + 1) * sizeof(struct tenant_hint));
}
