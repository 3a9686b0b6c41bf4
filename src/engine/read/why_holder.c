#include "engine/read/why_holder.h"

#include "engine/account/quota.h"
#include "engine/account/tenant.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"

bh_job_id
bh_why_job_of_lease(const struct bh_engine *engine, uint32_t lease)
{
    return (bh_job_id){ job_at(engine, lease_at(engine, lease)->job)->id };
}

bool
bh_why_is_stopping(const struct bh_engine *engine, uint32_t lease)
{
    return lease_at(engine, lease)->state == LEASE_STOPPING;
}

uint64_t
bh_why_leaves_by_ns(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, lease_at(engine, slot)->job);

    if (bh_why_is_stopping(engine, slot))
        return lease_at(engine, slot)->kill_ns;
    if (job->time_limit_ns)
        return bh_lease_ends_ns(engine, slot);
    return job->deadline_ns ? job->deadline_ns : UINT64_MAX;
}

void
bh_why_name_holder(const struct bh_engine *engine, uint32_t lease, struct bh_reason *reason)
{
    uint64_t by_ns = bh_why_leaves_by_ns(engine, lease);
    uint64_t known_ns = reason->frees_at_ns ? reason->frees_at_ns : UINT64_MAX;

    if (reason->job.v && by_ns >= known_ns)
        return;
    reason->job = bh_why_job_of_lease(engine, lease);
    reason->leaving = bh_why_is_stopping(engine, lease);
    reason->frees_at_ns = by_ns == UINT64_MAX ? 0 : by_ns;
}

/* ---- of a limit ---- */

/* What the lease would give back of it. */
static uint64_t
why_gives_back(const struct bh_engine *engine, uint32_t slot, const struct bh_why_limit *limit)
{
    const struct lease *lease = lease_at(engine, slot);
    struct bh_wanted held;

    if (!lease->parts[0] || (limit->whose && !bh_tenant_within(engine, limit->whose, lease->tenant)))
        return 0;
    held = bh_quota_of_lease(engine, slot);
    if (limit->code == BH_REASON_QUOTA_SKU)
        return held.sku == limit->sku ? held.count : 0;
    if (limit->code == BH_REASON_QUOTA_MODEL && held.model != limit->model)
        return 0;
    return limit->code != BH_REASON_QUOTA_USER || held.principal == limit->principal ? held.equivalent : 0;
}

/* How much is given back by then. */
static uint64_t
why_given_back(const struct bh_engine *engine, const struct bh_why_limit *limit, uint64_t by_ns)
{
    uint64_t sum = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);)
        if (why_gives_back(engine, slot, limit) && bh_why_leaves_by_ns(engine, slot) <= by_ns)
            sum += why_gives_back(engine, slot, limit);
    return sum;
}

/* By when enough is given back, UINT64_MAX where that is not known: as many steps as a time has bits. */
static uint64_t
why_enough_by_ns(const struct bh_engine *engine, const struct bh_why_limit *limit, uint64_t missing)
{
    uint64_t low = 0, high = UINT64_MAX;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (why_given_back(engine, limit, middle) >= missing)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void
bh_why_name_quota_holder(const struct bh_engine *engine, const struct bh_why_limit *limit,
                         struct bh_reason *reason)
{
    static const bool limits[BH_REASONS] = { [BH_REASON_QUOTA_GPU] = true,
                                             [BH_REASON_QUOTA_SKU] = true,
                                             [BH_REASON_QUOTA_MODEL] = true,
                                             [BH_REASON_QUOTA_USER] = true };
    uint64_t over = limits[reason->code] ? reason->used + reason->wanted : 0;
    uint64_t by_ns = why_enough_by_ns(engine, limit, over > reason->limit ? over - reason->limit : 1);

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);)
        if (why_gives_back(engine, slot, limit) && bh_why_leaves_by_ns(engine, slot) == by_ns)
            bh_why_name_holder(engine, slot, reason);
}
