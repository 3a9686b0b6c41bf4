#include "engine/queue/preemptible.h"

#include <string.h>

#include "base/assert.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"

/* A job's link is that of its first lease, so that jobs that wait need none. */
static struct preemptible *
preemptible_at(const struct bh_engine *engine, uint32_t lease)
{
    return (struct preemptible *)bh_block_at(engine, engine->hints.preemptible_offset) + lease;
}

static void
preemptible_append(struct bh_engine *engine, uint32_t slot)
{
    struct tenant_hint *tenant = bh_tenant_hint(engine, job_at(engine, slot)->tenant);
    uint32_t lease = job_at(engine, slot)->lease;

    BH_ASSERT(lease_at(engine, lease)->job == slot);
    BH_ASSERT(!tenant->last == !tenant->first);
    BH_ASSERT(tenant->last == 0 || preemptible_at(engine, job_at(engine, tenant->last)->lease)->next == 0);
    *preemptible_at(engine, lease) =
        (struct preemptible){ .prev = tenant->last, .since_ns = engine->core.now_ns };
    if (tenant->last)
        preemptible_at(engine, job_at(engine, tenant->last)->lease)->next = slot;
    else
        tenant->first = slot;
    tenant->last = slot;
}

static void
preemptible_unlink(struct bh_engine *engine, uint32_t slot)
{
    struct tenant_hint *tenant = bh_tenant_hint(engine, job_at(engine, slot)->tenant);
    const struct preemptible *preemptible = preemptible_at(engine, job_at(engine, slot)->lease);

    BH_ASSERT(preemptible->prev
                  ? preemptible_at(engine, job_at(engine, preemptible->prev)->lease)->next == slot
                  : tenant->first == slot);
    BH_ASSERT(preemptible->next
                  ? preemptible_at(engine, job_at(engine, preemptible->next)->lease)->prev == slot
                  : tenant->last == slot);
    if (preemptible->prev)
        preemptible_at(engine, job_at(engine, preemptible->prev)->lease)->next = preemptible->next;
    else
        tenant->first = preemptible->next;
    if (preemptible->next)
        preemptible_at(engine, job_at(engine, preemptible->next)->lease)->prev = preemptible->prev;
    else
        tenant->last = preemptible->prev;
}

static bool
preemptible_is_listed(const struct bh_engine *engine, uint32_t slot)
{
    return job_at(engine, slot)->contract != BH_CONTRACT_NEVER;
}

void
bh_preemptible_add(struct bh_engine *engine, uint32_t slot)
{
    BH_ASSERT(job_at(engine, slot)->lease != 0);
    if (preemptible_is_listed(engine, slot))
        preemptible_append(engine, slot);
}

void
bh_preemptible_remove(struct bh_engine *engine, uint32_t slot)
{
    BH_ASSERT(job_at(engine, slot)->lease != 0);
    if (preemptible_is_listed(engine, slot))
        preemptible_unlink(engine, slot);
}

/* Whether a member runs already. */
static bool
preemptible_has_begun(const struct bh_engine *engine, uint32_t slot)
{
    for (uint32_t at = 0; (at = bh_gang_next(engine, slot, at)) != 0;)
        if (lease_at(engine, at)->state == LEASE_RUNNING)
            return true;
    return false;
}

void
bh_preemptible_runs(struct bh_engine *engine, uint32_t slot)
{
    if (!preemptible_is_listed(engine, slot) || preemptible_has_begun(engine, slot))
        return;
    preemptible_unlink(engine, slot);
    preemptible_append(engine, slot);
}

uint32_t
bh_preemptible_first(const struct bh_engine *engine, uint32_t tenant)
{
    return bh_tenant_hint(engine, tenant)->first;
}

uint32_t
bh_preemptible_next(const struct bh_engine *engine, uint32_t slot)
{
    return preemptible_at(engine, job_at(engine, slot)->lease)->next;
}

uint64_t
bh_preemptible_since_ns(const struct bh_engine *engine, uint32_t slot)
{
    return preemptible_at(engine, job_at(engine, slot)->lease)->since_ns;
}

/* Whether it belongs where it stands, behind `last`. */
static bool
preemptible_fits_behind(const struct bh_engine *engine, uint32_t slot, uint32_t last)
{
    const struct preemptible *preemptible = preemptible_at(engine, job_at(engine, slot)->lease);

    for (uint32_t at = 0; (at = bh_gang_next(engine, slot, at)) != 0;)
        if (lease_at(engine, at)->state == LEASE_RUNNING
            && lease_at(engine, at)->since_ns < preemptible->since_ns)
            return false;
    return preemptible->prev == last && preemptible_is_listed(engine, slot)
           && (!last || bh_preemptible_since_ns(engine, last) <= preemptible->since_ns);
}

bool
bh_preemptible_check(const struct bh_engine *engine, uint32_t tenant, uint32_t jobs)
{
    uint32_t last = 0;

    for (uint32_t at = bh_preemptible_first(engine, tenant); at; at = bh_preemptible_next(engine, at)) {
        if (jobs-- == 0 || job_at(engine, at)->tenant != tenant || !job_at(engine, at)->lease
            || !preemptible_fits_behind(engine, at, last))
            return false;
        last = at;
    }
    return jobs == 0 && bh_tenant_hint(engine, tenant)->last == last;
}

void
bh_preemptible_copy(struct bh_engine *engine, const struct bh_engine *from)
{
    engine->hints.changes = from->hints.changes;
    memcpy(preemptible_at(engine, 0), preemptible_at(from, 0),
           ((size_t)from->tables[TABLE_LEASE].high + 1) * sizeof(struct preemptible));
    memcpy(bh_tenant_hint(engine, 0), bh_tenant_hint(from, 0),
           ((size_t)from->tables[TABLE_TENANT].high + 1) * sizeof(struct tenant_hint));
}
