#include "engine/decide.h"

#include "base/assert.h"
#include "engine/jobs.h"
#include "engine/lease.h"
#include "engine/order.h"
#include "engine/place.h"
#include "engine/preempt.h"
#include "engine/quota.h"
#include "engine/slots.h"
#include "engine/tenant.h"

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

static void
decide_place(const struct bh_engine *engine, uint32_t job, const struct bh_plan *plan,
             struct bh_decision *ret_decision)
{
    *ret_decision = (struct bh_decision){ .kind = BH_DO_PLACE,
                                          .job = { job_at(engine, job)->id },
                                          .lease = { engine->core.next_lease } };
    bh_place_decide(engine, plan, ret_decision);
}

/* Whether a claimed room is free, and the limits allow it, in what is imagined. */
static bool
can_take(const struct bh_search *search, const struct bh_need *need, const struct claim *claim)
{
    struct bh_wanted wanted = { need->tenant, need->sku, need->count, claim->equivalent };
    struct bh_reason why;
    uint32_t whose;

    return bh_place_possible(search, claim->places, claim->count)
           && bh_quota_allows(search, &wanted, &why, &whose);
}

/* A job for which room is being made: it goes there and nowhere else, and gives the
 * room up when it does not come free. */
static bool
try_claim(struct bh_engine *engine, const struct bh_need *need, const struct claim *claim,
          struct bh_decision *ret_decision)
{
    struct bh_search search = { .engine = engine, .tenant = need->tenant, .job = need->job };
    struct bh_plan plan;

    if (can_take(&search, need, claim)
        && bh_place_plan(engine, need->tenant, claim->places, claim->count, &plan)) {
        decide_place(engine, need->job, &plan, ret_decision);
        return true;
    }
    search.past_leaving = true;
    if (can_take(&search, need, claim))
        return false;
    *ret_decision = (struct bh_decision){ .kind = BH_DO_UNCLAIM,
                                          .job = { job_at(engine, need->job)->id } };
    return true;
}

/* The claim of any job of the class: a requeued one may have come before it. */
static const struct claim *
claim_of(const struct bh_engine *engine, uint32_t class)
{
    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->job && job_at(engine, claim->job)->class == class)
            return claim;
    }
    return NULL;
}

static bool
try_class(struct work *work, uint32_t class, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_need need = bh_place_need(engine, class);
    const struct claim *claim = claim_of(engine, class);
    struct bh_search search = { .engine = engine, .tenant = need.tenant, .job = need.job };
    struct bh_plan plan;

    if (claim) {
        need.job = claim->job;
        return try_claim(engine, &need, claim, ret_decision);
    }
    if (!bh_place_find(&search, &need, &plan, NULL))
        return bh_preempt(work, &need, ret_decision);
    decide_place(engine, need.job, &plan, ret_decision);
    return true;
}

static bool
try_resume(struct bh_engine *engine, uint32_t slot, struct bh_decision *ret_decision)
{
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    struct bh_search search = { .engine = engine, .tenant = lease->tenant, .job = lease->job,
                                .gone_count = 1, .gone = { slot } };
    struct bh_wanted wanted = { .tenant = lease->tenant, .sku = job->sku,
                                .count = lease->count };
    struct bh_reason why;
    struct bh_plan plan;
    uint32_t whose;

    for (uint32_t i = 0; i < lease->count; i++)
        wanted.equivalent += bh_quota_equivalent(lease->places[i].profile, 1);
    if (!bh_quota_allows(&search, &wanted, &why, &whose)
        || !bh_place_possible(&search, lease->places, lease->count)
        || !bh_place_plan(engine, lease->tenant, lease->places, lease->count, &plan))
        return false;
    *ret_decision = (struct bh_decision){ .kind = BH_DO_RESUME, .job = { job->id },
                                          .lease = { lease->id } };
    bh_place_decide(engine, &plan, ret_decision);
    return true;
}

/* When a class that could not be helped may be by time alone, or 0. */
static uint64_t
wait_until(const struct bh_engine *engine, uint32_t slot)
{
    const struct class *class = class_at(engine, slot);
    uint64_t now_ns = engine->core.now_ns, until_ns = 0;
    uint64_t preempt_ns = job_at(engine, class->head)->preempt_after_ns;

    if (class->avoid_until_ns > now_ns)
        until_ns = class->avoid_until_ns;
    if (preempt_ns > now_ns && (until_ns == 0 || preempt_ns < until_ns))
        until_ns = preempt_ns;
    return until_ns;
}

static bool
help_first(struct work *work, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_candidate candidate;

    while (bh_order_first(engine, &candidate)) {
        bool helped = candidate.class ? try_class(work, candidate.class, ret_decision)
                                      : try_resume(engine, candidate.lease, ret_decision);

        if (helped)
            return true;
        bh_order_park(engine, &candidate,
                      candidate.class ? wait_until(engine, candidate.class) : 0);
    }
    return false;
}

/* The earliest time for which a class is parked. */
static void
set_wake(struct bh_engine *engine)
{
    engine->hints.wake_ns = 0;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        uint64_t until_ns = bh_class_hint(engine, slot)->until_ns;

        if (until_ns > engine->core.now_ns
            && (engine->hints.wake_ns == 0 || until_ns < engine->hints.wake_ns))
            engine->hints.wake_ns = until_ns;
    }
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
    if (bh_preempt_next(work, ret_decision))
        return true;
    if (sweep(work->engine, tick, ret_decision) || help_first(work, ret_decision))
        return true;
    hints->settled = true;
    return false;
}

uint32_t
bh_decide_effects(const struct bh_engine *engine, const struct bh_decision *decision)
{
    uint32_t most = 3; /* the lease's own, and two jobs */

    for (uint32_t i = 0; i < decision->piece_count; i++)
        if (decision->pieces[i].carve)
            most += 1 + gpu_at(engine, gpu_find(engine, decision->pieces[i].gpu.v))->idle;
    return most;
}
