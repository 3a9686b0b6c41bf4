#include "engine/read/why_guarantee.h"

#include "engine/gpu/capacity.h"
#include "engine/preempt/preempt.h"
#include "engine/preempt/victim.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"

/* The lowest tenant from `at` up whose guarantees say something of what is wanted, or 0. */
static uint32_t
guaranteed_from(const struct bh_engine *engine, uint32_t at, const struct bh_wanted *wanted)
{
    while (at && !bh_guarantee_concerns(engine, at, wanted))
        at = tenant_at(engine, at)->parent;
    return at;
}

/* The row that guarantees cover best, as the job that would take room back counts: what they say
 * of it. */
static struct bh_wanted
best_wanted(const struct bh_engine *engine, const struct bh_need *need, enum bh_cover *ret_cover)
{
    const struct sku *sku = sku_at(engine, need->sku);
    struct bh_wanted ret = { 0 };

    *ret_cover = BH_COVER_NONE;
    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct bh_wanted wanted = bh_placement_wanted(engine, need, row);
        enum bh_cover cover;
        uint32_t within;

        if (!bh_placement_by(engine, need, row))
            continue;
        cover = bh_guarantee_cover_with_claims(engine, &wanted, need->job, &within);
        if (ret.tenant && cover <= *ret_cover)
            continue;
        ret = wanted;
        *ret_cover = cover;
    }
    return ret;
}

/* Whether a job borrows that can never be preempted, however much time passes. */
static bool
borrowed_for_good(struct bh_preemptor *preemptor, const struct bh_search *search)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t job = 0; bh_slot_next(engine, TABLE_JOB, &job);)
        if (job_at(engine, job)->lease && job_at(engine, job)->contract == BH_CONTRACT_NEVER
            && bh_victim_borrows(preemptor, search, job))
            return true;
    return false;
}

/* Whether the job holds anything whose GPU gives room before it is reset. */
static bool
holds_capacity(const struct bh_engine *engine, uint32_t job)
{
    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        for (uint32_t i = 0; i < lease_at(engine, at)->count; i++)
            if (!bh_capacity_is_futile(engine, gpu_find(engine, lease_at(engine, at)->placements[i].gpu)))
                return true;
    return false;
}

/* Some borrow and may be asked; `room`: where that would be of use. */
static enum bh_guarantee_cause
why_not_asked(const struct bh_engine *engine, uint32_t job, bool capacity)
{
    if (!capacity)
        return BH_GUARANTEE_RESET;
    if (bh_preempt_spent(engine, job))
        return BH_GUARANTEE_SPENT;
    return bh_preempt_pauses(engine, job) ? BH_GUARANTEE_NO_CAUSE : BH_GUARANTEE_TOO_LITTLE;
}

/* A guarantee covers it: which job borrows, and why it does not leave. */
static enum bh_guarantee_cause
why_kept_by_others(const struct bh_search *search, const struct bh_wanted *wanted, uint64_t *ret_until_ns)
{
    const struct bh_engine *engine = search->engine;
    struct bh_preemptor preemptor;
    struct bh_victim_iterator victims_iterator = { .within = 0 };
    bool any = false, capacity = false;

    bh_preemptor_init(&preemptor, search, search->job, wanted);
    while (!capacity && bh_victim_next(&preemptor, search, &victims_iterator)) {
        if (!bh_victim_borrows(&preemptor, search, victims_iterator.job)
            || !bh_victim_eligible(&preemptor, search, victims_iterator.job))
            continue;
        any = true;
        capacity = holds_capacity(engine, victims_iterator.job);
    }
    if (any)
        return why_not_asked(engine, search->job, capacity);
    *ret_until_ns = preemptor.of_age_ns;
    if (preemptor.of_age_ns)
        return BH_GUARANTEE_YOUNG;
    return borrowed_for_good(&preemptor, search) ? BH_GUARANTEE_NEVER : BH_GUARANTEE_NO_BORROWER;
}

void
bh_why_guarantee(const struct bh_search *base, const struct bh_need *need,
                 struct bh_guarantee_reason *ret_reason)
{
    const struct bh_engine *engine = base->engine;
    enum bh_cover cover;
    struct bh_wanted wanted = best_wanted(engine, need, &cover);
    struct bh_guarantee_reason reason = { .cause = BH_GUARANTEE_USED };
    struct bh_search search = *base;
    uint32_t at = guaranteed_from(engine, wanted.tenant, &wanted);

    if (at == 0)
        return;
    search.past_leaving = true;
    if (cover != BH_COVER_NONE)
        reason.cause = why_kept_by_others(&search, &wanted, &reason.until_ns);
    if (reason.cause == BH_GUARANTEE_NO_CAUSE)
        return;
    reason.shared = at != need->tenant;
    reason.tenant.v = (uint32_t)tenant_at(engine, at)->id;
    reason.limit = tenant_at(engine, at)->guarantee;
    reason.coming = bh_guarantee_claimed(engine, at, need->job);
    reason.used = tenant_at(engine, at)->used + reason.coming;
    reason.wanted = wanted.equivalent;
    *ret_reason = reason;
}
