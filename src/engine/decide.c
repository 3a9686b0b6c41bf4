#include "engine/decide.h"

#include "base/assert.h"
#include "engine/gang.h"
#include "engine/jobs.h"
#include "engine/lease.h"
#include "engine/order.h"
#include "engine/place.h"
#include "engine/preempt.h"
#include "engine/quota.h"
#include "engine/slots.h"
#include "engine/tenant.h"
#include "engine/usage.h"

/* ---- leases and jobs that have lost their ground ---- */

static bool
on_fenced_gpu(const struct bh_engine *engine, const struct lease *lease)
{
    for (uint32_t i = 0; i < lease->count; i++)
        if (gpu_at(engine, gpu_find(engine, lease->places[i].gpu))->fenced)
            return true;
    return false;
}

static enum bh_end_cause
must_end(const struct bh_engine *engine, uint32_t slot, bool tick)
{
    const struct lease *lease = lease_at(engine, slot);

    if (lease->state == LEASE_DONE)
        return BH_END_NONE;
    if (bh_tenant_leaving(engine, lease->tenant))
        return lease->stop_cause == BH_END_TENANT_REMOVED
                       || lease->stop_cause == BH_END_CANCELLED
                   ? BH_END_NONE
                   : BH_END_TENANT_REMOVED;
    if (lease->state == LEASE_STOPPING)
        return BH_END_NONE;
    if (on_fenced_gpu(engine, lease))
        return BH_END_GPU_LOST;
    if (tick && engine->core.now_ns >= bh_lease_deadline_ns(engine, slot))
        return BH_END_TIME_LIMIT;
    return BH_END_NONE;
}

static bool
sweep_leases(const struct bh_engine *engine, bool tick, struct bh_decision *ret_decision)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        enum bh_end_cause cause = must_end(engine, slot, tick);
        const struct lease *lease = lease_at(engine, slot);

        if (cause == BH_END_NONE)
            continue;
        *ret_decision = (struct bh_decision){ .kind = BH_DO_STOP, .cause = cause,
                                              .lease = { lease->id },
                                              .job = { job_at(engine, lease->job)->id } };
        return true;
    }
    return false;
}

static bool
sweep_classes(const struct bh_engine *engine, struct bh_decision *ret_decision)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        const struct class *class = class_at(engine, slot);

        if (!bh_tenant_leaving(engine, class->tenant))
            continue;
        *ret_decision = (struct bh_decision){ .kind = BH_DO_STOP,
                                              .cause = BH_END_TENANT_REMOVED,
                                              .job = { job_at(engine, class->head)->id } };
        return true;
    }
    return false;
}

static bool
sweep(struct bh_engine *engine, bool tick, struct bh_decision *ret_decision)
{
    if (engine->hints.swept && !tick)
        return false;
    if (sweep_leases(engine, tick, ret_decision) || sweep_classes(engine, ret_decision))
        return true;
    engine->hints.swept = true;
    return false;
}

/* ---- room for the first candidate ---- */

static bool
place_at(struct work *work, uint32_t job, const struct place *places, uint32_t count,
         struct bh_decision *ret_decision)
{
    bh_gang_begin(work, BH_DO_PLACE, job, places, count);
    return bh_gang_decide(work, ret_decision);
}

/* Whether a claimed room is free, and the limits allow it, in what is imagined. */
static bool
can_take(const struct bh_search *search, const struct bh_need *need, const struct claim *claim)
{
    struct bh_wanted wanted = bh_quota_of_claim(search->engine, claim);
    struct bh_reason why;
    uint32_t whose;

    return bh_place_possible(search, claim->places, claim->count)
           && bh_quota_allows(search, &wanted, &why, &whose);
}

/* A job for which room is being made: it goes there and nowhere else, and gives the
 * room up when it does not come free. */
static bool
try_claim(struct work *work, const struct bh_need *need, const struct claim *claim,
          struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_search search = { .engine = engine, .tenant = need->tenant, .job = need->job };

    if (can_take(&search, need, claim))
        return place_at(work, need->job, claim->places, claim->count, ret_decision);
    search.past_leaving = true;
    if (can_take(&search, need, claim))
        return false;
    *ret_decision = (struct bh_decision){ .kind = BH_DO_UNCLAIM,
                                          .job = { job_at(engine, need->job)->id } };
    return true;
}

/* The class's jobs that have claims, wherever they stand in it: a requeued one may
 * have come before them. */
static bool
try_claims(struct work *work, uint32_t class, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_need need = bh_place_need(engine, class);

    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (!claim->job || job_at(engine, claim->job)->class != class)
            continue;
        need.job = claim->job;
        if (try_claim(work, &need, claim, ret_decision))
            return true;
    }
    return false;
}

/* The class's first job (slot) that has no claim, or 0. */
static uint32_t
first_unclaimed(struct bh_engine *engine, uint32_t class)
{
    uint32_t job = class_at(engine, class)->head;

    while (job && bh_job_claim(engine, job))
        job = job_at(engine, job)->next;
    return job;
}

static bool
try_class(struct work *work, uint32_t class, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_need need = bh_place_need(engine, class);
    struct bh_search search = { .engine = engine, .tenant = need.tenant };
    struct place places[BH_JOB_PIECES_MAX];
    struct bh_plan plan;
    struct bh_reason why;

    if (try_claims(work, class, ret_decision))
        return true;
    if (bh_usage_exhausted(engine, need.tenant, &why))
        return false;
    need.job = search.job = first_unclaimed(engine, class);
    if (!need.job)
        return false;
    if (!bh_place_find(&search, &need, &plan, NULL))
        return bh_preempt(work, &need, ret_decision);
    bh_place_list(engine, &plan, places);
    return place_at(work, need.job, places, plan.count, ret_decision);
}

static bool
can_resume(const struct bh_search *search)
{
    struct bh_wanted wanted = bh_gang_to_resume(search->engine, search->job);
    struct place places[BH_JOB_PIECES_MAX];
    uint32_t count = bh_gang_places(search->engine, search->job, places);
    struct bh_reason why;
    uint32_t whose;

    return bh_place_possible(search, places, count)
           && bh_quota_allows(search, &wanted, &why, &whose);
}

/* A suspended gang goes on where it was, and may have lower ones leave from there. */
static bool
try_resume(struct work *work, uint32_t job, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_search search = { .engine = engine, .tenant = job_at(engine, job)->tenant,
                                .job = job };

    if (can_resume(&search)) {
        bh_gang_begin(work, BH_DO_RESUME, job, NULL, 0);
        return bh_gang_decide(work, ret_decision);
    }
    if (!bh_job_claim(engine, job))
        return bh_preempt_to_resume(work, job, ret_decision);
    search.past_leaving = true;
    if (can_resume(&search))
        return false;
    *ret_decision = (struct bh_decision){ .kind = BH_DO_UNCLAIM,
                                          .job = { job_at(engine, job)->id } };
    return true;
}

static uint64_t
sooner(uint64_t a_ns, uint64_t b_ns, uint64_t now_ns)
{
    if (a_ns <= now_ns)
        return b_ns > now_ns ? b_ns : 0;
    return b_ns > now_ns && b_ns < a_ns ? b_ns : a_ns;
}

/* When a candidate that could not be helped may be by time alone, or 0. */
static uint64_t
wait_until(struct bh_engine *engine, const struct bh_candidate *candidate)
{
    const struct class *class = class_at(engine, candidate->class);
    uint32_t job = candidate->class ? first_unclaimed(engine, candidate->class)
                                    : lease_at(engine, candidate->lease)->job;

    struct bh_reason why;
    uint64_t until_ns = sooner(class->avoid_until_ns, job_at(engine, job)->preempt_after_ns,
                               engine->core.now_ns);

    if (candidate->class && bh_usage_exhausted(engine, class->tenant, &why))
        until_ns = sooner(until_ns, why.frees_at_ns, engine->core.now_ns);
    return until_ns;
}

static bool
help_first(struct work *work, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_candidate candidate;

    bh_order_again(engine);
    while (bh_order_first(engine, &candidate)) {
        uint32_t job = lease_at(engine, candidate.lease)->job;
        bool helped = candidate.class ? try_class(work, candidate.class, ret_decision)
                                      : try_resume(work, job, ret_decision);

        if (helped)
            return true;
        bh_order_park(engine, &candidate, wait_until(engine, &candidate));
    }
    return false;
}

/* The earliest time for which a candidate is parked. */
static void
set_wake(struct bh_engine *engine)
{
    uint64_t wake_ns = 0, now_ns = engine->core.now_ns;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);)
        wake_ns = sooner(wake_ns, bh_class_hint(engine, slot)->until_ns, now_ns);
    for (uint32_t slot = 0; engine->core.suspended && bh_slot_next(engine, TABLE_LEASE, &slot);)
        wake_ns = sooner(wake_ns, bh_lease_hint(engine, slot)->until_ns, now_ns);
    engine->hints.wake_ns = wake_ns;
}

bool
bh_decide_due(struct bh_engine *engine)
{
    const struct hints *hints = &engine->hints;

    if (hints->wake_ns && engine->core.now_ns >= hints->wake_ns) {
        set_wake(engine);
        return true;
    }
    return !hints->settled;
}

bool
bh_decide(struct work *work, bool tick, struct bh_decision *ret_decision)
{
    struct hints *hints = &work->engine->hints;

    BH_ASSERT(work->now_ns == work->engine->core.now_ns);
    if (bh_gang_decide(work, ret_decision) || bh_preempt_next(work, ret_decision))
        return true;
    if (sweep(work->engine, tick, ret_decision) || help_first(work, ret_decision))
        return true;
    hints->settled = true;
    return false;
}

uint32_t
bh_decide_effects(const struct bh_engine *engine, const struct bh_decision *decision)
{
    struct place places[BH_JOB_COUNT_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < decision->piece_count; i++)
        if (decision->pieces[i].carve)
            places[count++].gpu = decision->pieces[i].gpu.v;
    /* each member's lease its own, and two jobs */
    return 2 + job_at(engine, job_find(engine, decision->job.v))->gang
           + bh_gang_carving(engine, places, count);
}

bool
bh_decide_begun(const struct work *work)
{
    return work->bunch.next < work->bunch.members || work->victim_count > 0;
}

struct bh_record_needs
bh_decide_record(const struct work *work, const struct bh_decision *decision)
{
    const struct bunch *bunch = &work->bunch;
    bool bunched = decision->kind == BH_DO_PLACE || decision->kind == BH_DO_RESUME;
    struct bh_record_needs needs = {
        .decisions = 1 + bunch->members - bunch->next + work->victim_count,
        .pieces = decision->piece_count * (1 + bunch->members - bunch->next),
        .effects = bunched ? bh_gang_effects(work) : bh_decide_effects(work->engine, decision),
    };

    for (uint32_t i = 0; i < work->victim_count; i++)
        needs.effects += 2 + job_at(work->engine, work->victims[i])->gang;
    return needs;
}
