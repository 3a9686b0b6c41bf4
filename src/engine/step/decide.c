#include "engine/step/decide.h"

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/account/tenant.h"
#include "engine/account/usage.h"
#include "engine/gpu/health.h"
#include "engine/gpu/layout.h"
#include "engine/gpu/node_index.h"
#include "engine/placement/placement.h"
#include "engine/placement/shortcut.h"
#include "engine/placement/warm.h"
#include "engine/preempt/preempt.h"
#include "engine/preempt/reserve.h"
#include "engine/queue/claim.h"
#include "engine/queue/gang_decide.h"
#include "engine/queue/jobs.h"
#include "engine/queue/queue.h"
#include "engine/state/gang.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"
#include "engine/state/sound.h"

/* ---- leases and jobs that have lost their ground ---- */

static bool
decide_on_fenced_gpu(const struct bh_engine *engine, const struct lease *lease)
{
    for (uint32_t i = 0; i < lease->count; i++)
        if (gpu_at(engine, gpu_find(engine, lease->placements[i].gpu))->fenced == FENCE_ENDS)
            return true;
    return false;
}

static bool
decide_missed_deadline(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot);

    return job->deadline_ns && engine->core.now_ns >= job->deadline_ns;
}

static enum bh_end_cause
decide_must_end(const struct bh_engine *engine, uint32_t slot, bool tick)
{
    const struct lease *lease = lease_at(engine, slot);
    enum bh_end_cause cause;

    if (lease->state == LEASE_DONE)
        return BH_END_NONE;
    if (bh_tenant_leaving(engine, lease->tenant))
        return lease->stop_cause == BH_END_TENANT_REMOVED || lease->stop_cause == BH_END_CANCELLED
                   ? BH_END_NONE
                   : BH_END_TENANT_REMOVED;
    if (lease->state == LEASE_STOPPING)
        return BH_END_NONE;
    if (decide_on_fenced_gpu(engine, lease))
        return BH_END_GPU_LOST;
    cause = bh_health_ends(engine, slot);
    if (cause != BH_END_NONE)
        return cause;
    if (!tick || engine->core.now_ns < bh_lease_deadline_ns(engine, slot))
        return BH_END_NONE;
    return decide_missed_deadline(engine, lease->job) ? BH_END_DEADLINE : BH_END_TIME_LIMIT;
}

static bool
decide_sweep_leases(const struct bh_engine *engine, bool tick, struct bh_decision *ret_decision)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);
        enum bh_end_cause cause;

        BH_ASSERT(bh_sound_lease(engine, slot));
        cause = decide_must_end(engine, slot, tick);
        if (cause == BH_END_NONE)
            continue;
        *ret_decision = (struct bh_decision){ .kind = BH_DO_STOP,
                                              .cause = cause,
                                              .lease = { lease->id },
                                              .job = { job_at(engine, lease->job)->id } };
        return true;
    }
    return false;
}

static bool
decide_sweep_classes(const struct bh_engine *engine, struct bh_decision *ret_decision)
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

/* End pending jobs that can no longer end by their deadline. */
static bool
decide_sweep_hopeless(struct bh_engine *engine, struct bh_decision *ret_decision)
{
    uint64_t next_ns = UINT64_MAX, now_ns = engine->core.now_ns;

    if (engine->hints.hopeless_ns > now_ns)
        return false;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_JOB, &slot);) {
        const struct job *job = job_at(engine, slot);
        uint64_t hopeless_ns = bh_job_hopeless_ns(job->deadline_ns, job->time_limit_ns);

        if (job->state != BH_JOB_PENDING || job->deadline_ns == 0)
            continue;
        if (hopeless_ns <= now_ns) {
            *ret_decision =
                (struct bh_decision){ .kind = BH_DO_STOP, .cause = BH_END_DEADLINE, .job = { job->id } };
            return true;
        }
        next_ns = hopeless_ns < next_ns ? hopeless_ns : next_ns;
    }
    engine->hints.hopeless_ns = next_ns;
    return false;
}

static bool
decide_sweep(struct bh_engine *engine, bool tick, struct bh_decision *ret_decision)
{
    if (engine->hints.swept && !tick)
        return false;
    if (tick && decide_sweep_hopeless(engine, ret_decision))
        return true;
    if (decide_sweep_leases(engine, tick, ret_decision) || decide_sweep_classes(engine, ret_decision))
        return true;
    engine->hints.swept = true;
    return false;
}

/* ---- room for the first candidate ---- */

static bool
decide_placement_at(struct work *work, uint32_t job, const struct placement *placements, uint32_t count,
                    struct bh_decision *ret_decision)
{
    bh_gang_begin(work, BH_DO_PLACE, job, placements, count);
    return bh_gang_decide(work, ret_decision);
}

/* Whether a claimed room is free, and the limits allow it, in what is imagined. */
static bool
decide_can_use(const struct bh_search *search, const struct claim *claim)
{
    struct bh_wanted wanted = bh_quota_of_claim(search->engine, claim);

    return bh_placement_possible(search, claim->placements, claim->count)
           && bh_quota_permits(search, &wanted);
}

static void
decide_unclaim(const struct bh_engine *engine, uint32_t job, struct bh_decision *ret_decision)
{
    *ret_decision = (struct bh_decision){ .kind = BH_DO_UNCLAIM, .job = { job_at(engine, job)->id } };
}

/* A job for which room is being made: it goes there and nowhere else, and gives the
 * room up when it does not come free. */
static bool
decide_try_claim(struct work *work, const struct bh_queue_entry *entry, const struct claim *claim,
                 struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_search search = bh_reserve_search(engine, entry, claim->job);

    search.closed = 0;
    if (decide_can_use(&search, claim))
        return decide_placement_at(work, claim->job, claim->placements, claim->count, ret_decision);
    search.past_leaving = true;
    search.past = bh_reserve_set(engine);
    if (decide_can_use(&search, claim))
        return false;
    decide_unclaim(engine, claim->job, ret_decision);
    return true;
}

/* The class's jobs that have claims, wherever they stand in it: a requeued one may
 * have come before them. */
static bool
decide_try_claims(struct work *work, const struct bh_queue_entry *entry, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;

    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->job && claim->at_ns == 0 && job_at(engine, claim->job)->class == entry->class
            && decide_try_claim(work, entry, claim, ret_decision))
            return true;
    }
    return false;
}

static bool
decide_try_class(struct work *work, const struct bh_queue_entry *entry, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_need need = bh_placement_need(engine, entry->class);
    struct placement placements[BH_JOB_PARTITIONS_MAX];
    struct bh_search search;
    struct bh_plan plan;
    struct bh_reason why;

    if (decide_try_claims(work, entry, ret_decision))
        return true;
    if (bh_usage_exhausted(engine, need.tenant, &why))
        return false;
    need.job = bh_queue_job(engine, entry);
    if (!need.job)
        return false;
    search = bh_reserve_search(engine, entry, need.job);
    if (!bh_shortcut_find(engine, &search, &need, &plan))
        return bh_preempt(work, &search, &need, ret_decision);
    bh_placement_list(engine, &plan, placements);
    return decide_placement_at(work, need.job, placements, plan.count, ret_decision);
}

static bool
decide_can_resume(const struct bh_search *search)
{
    struct bh_wanted wanted = bh_quota_to_resume_all(search->engine, search->job);
    struct placement placements[BH_JOB_PARTITIONS_MAX];
    uint32_t count = bh_gang_places(search->engine, search->job, placements);

    return bh_placement_possible(search, placements, count) && bh_quota_permits(search, &wanted);
}

/* A suspended gang resumes where it was, and may preempt lower jobs there. */
static bool
decide_try_resume(struct work *work, const struct bh_queue_entry *entry, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t job = lease_at(engine, entry->lease)->job;
    struct bh_search search = bh_reserve_search(engine, entry, job);

    if (bh_claim_of(engine, job))
        search.closed = 0;
    if (decide_can_resume(&search)) {
        bh_gang_begin(work, BH_DO_RESUME, job, NULL, 0);
        return bh_gang_decide(work, ret_decision);
    }
    if (!bh_claim_of(engine, job))
        return bh_preempt_to_resume(work, &search, ret_decision);
    search.past_leaving = true;
    search.past = bh_reserve_set(engine);
    if (decide_can_resume(&search))
        return false;
    decide_unclaim(engine, job, ret_decision);
    return true;
}

static uint64_t
decide_sooner(uint64_t a_ns, uint64_t b_ns, uint64_t now_ns)
{
    if (a_ns <= now_ns)
        return b_ns > now_ns ? b_ns : 0;
    return b_ns > now_ns && b_ns < a_ns ? b_ns : a_ns;
}

/* When a candidate that could not be helped may be by time alone, or 0. */
static uint64_t
decide_wait_until(const struct work *work, const struct bh_queue_entry *entry)
{
    struct bh_engine *engine = work->engine;
    const struct class *class = class_at(engine, entry->class);
    uint32_t job = bh_queue_job(engine, entry);
    uint64_t now_ns = engine->core.now_ns;
    uint64_t until_ns = decide_sooner(class->avoid_until_ns, job_at(engine, job)->preempt_after_ns, now_ns);
    struct bh_reason why;

    if (entry->class && bh_usage_exhausted(engine, class->tenant, &why))
        until_ns = decide_sooner(until_ns, why.frees_at_ns, now_ns);
    return decide_sooner(until_ns, work->of_age_ns, now_ns);
}

/* A limit holds the class back, and making others leave would not help. */
static bool
decide_is_blocked_by_limit(struct work *work, const struct bh_queue_entry *entry)
{
    struct bh_engine *engine = work->engine;
    struct bh_need need;
    uint32_t within;

    if (!entry->class || bh_claim_of_class(engine, entry->class))
        return false;
    need = bh_placement_need(engine, entry->class);
    if (!bh_preempt_in_vain(work, &need, &within))
        return false;
    bh_queue_block(engine, entry->class, within, decide_wait_until(work, entry));
    return true;
}

/* Place or resume it, or make room for it; else it is deferred, and may have room kept for it.
 * One that a limit holds back is not: later walks do not see it. */
static bool
decide_try_entry(struct work *work, struct bh_walk *walk, const struct bh_queue_entry *entry,
                 struct bh_decision *ret_decision)
{
    if (entry->deferred)
        return bh_reserve_decide(work, walk, entry, ret_decision);
    work->of_age_ns = 0;
    if (decide_is_blocked_by_limit(work, entry))
        return false;
    work->of_age_ns = 0;
    if (entry->class ? decide_try_class(work, entry, ret_decision)
                     : decide_try_resume(work, entry, ret_decision))
        return true;
    bh_queue_defer(work->engine, entry, decide_wait_until(work, entry));
    return bh_reserve_decide(work, walk, entry, ret_decision);
}

/* In order: a job that cannot be helped may be the first for some GPU model, and have capacity kept from
 * those that follow. */
static bool
decide_help_first(struct work *work, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_queue_entry entry;
    struct bh_walk walk = { .headed = 0 };

    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++)
        BH_ASSERT(engine->core.claims[i].job == 0 || bh_sound_claim(engine, &engine->core.claims[i]));
    bh_queue_rewind(engine);
    while (bh_queue_next(engine, &entry))
        if (decide_try_entry(work, &walk, &entry, ret_decision))
            return true;
    return bh_reserve_give_up(engine, &walk, ret_decision);
}

/* The earliest time for which a candidate is deferred. */
static void
decide_set_wake(struct bh_engine *engine)
{
    uint64_t wake_ns = 0, now_ns = engine->core.now_ns;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);)
        wake_ns = decide_sooner(wake_ns, bh_class_hint(engine, slot)->until_ns, now_ns);
    for (uint32_t slot = 0; engine->core.suspended && bh_slot_next(engine, TABLE_LEASE, &slot);)
        wake_ns = decide_sooner(wake_ns, bh_lease_hint(engine, slot)->until_ns, now_ns);
    engine->hints.wake_ns = wake_ns;
    engine->hints.wake_stale = false;
}

bool
bh_decide_due(struct bh_engine *engine)
{
    const struct hints *hints = &engine->hints;
    bool wake = hints->wake_stale || (hints->wake_ns && engine->core.now_ns >= hints->wake_ns);

    if (wake)
        decide_set_wake(engine);
    return wake || !hints->settled
           || (hints->reserved_until_ns && engine->core.now_ns >= hints->reserved_until_ns);
}

bool
bh_decide(struct work *work, bool tick, struct bh_decision *ret_decision)
{
    struct hints *hints = &work->engine->hints;

    BH_ASSERT(work->now_ns == work->engine->core.now_ns);
    bh_node_index_update(work->engine);
    if (bh_gang_decide(work, ret_decision) || bh_preempt_next(work, ret_decision))
        return true;
    if (decide_sweep(work->engine, tick, ret_decision) || decide_help_first(work, ret_decision)
        || bh_layout_decide(work, ret_decision) || bh_warm_decide(work, ret_decision))
        return true;
    hints->reserved_until_ns = bh_reserve_until_ns(work->engine);
    hints->settled = true;
    return false;
}

uint32_t
bh_decide_effects(const struct bh_engine *engine, const struct bh_decision *decision)
{
    struct placement placements[BH_JOB_COUNT_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < decision->partition_count; i++)
        if (decision->partitions[i].carve)
            placements[count++].gpu = decision->partitions[i].gpu.v;
    /* each member's lease its own, and two jobs */
    return 2 + job_at(engine, job_find(engine, decision->job.v))->gang
           + bh_gang_carving(engine, placements, count);
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
        .partitions = decision->partition_count * (1 + bunch->members - bunch->next),
        .effects = bunched ? bh_gang_effects(work) : bh_decide_effects(work->engine, decision),
    };

    for (uint32_t i = 0; i < work->victim_count; i++)
        needs.effects += 2 + job_at(work->engine, work->victims[i])->gang;
    return needs;
}
