#include "engine/step/step.h"

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/account/usage.h"
#include "engine/gpu/health.h"
#include "engine/gpu/layout.h"
#include "engine/gpu/ledger.h"
#include "engine/gpu/partition.h"
#include "engine/placement/limit.h"
#include "engine/placement/warm.h"
#include "engine/queue/jobs.h"
#include "engine/state/effect.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"
#include "engine/state/sound.h"
#include "engine/state/wake.h"
#include "engine/step/admit.h"
#include "engine/step/apply.h"
#include "engine/step/decide.h"
#include "engine/step/transition.h"

static void
clear_step(struct bh_step *step)
{
    step->verdict = (struct bh_reason){ 0 };
    step->more = false;
    step->decision_count = step->effect_count = 0;
}

/* Admit the event, and change what it changes by itself. */
static bh_rc
step_admit(struct work *work, const struct bh_event *event)
{
    struct bh_engine *engine = work->engine;
    uint64_t half_life_ns = engine->core.half_life_began_ns;
    bh_rc rc;

    clear_step(work->step);
    rc = bh_admit(engine, event, &work->step->verdict);
    if (rc != BH_OK)
        return rc;
    work->now_ns = event->now_ns > engine->core.now_ns ? event->now_ns : engine->core.now_ns;
    work->seq = event->seq;
    bh_usage_advance(engine, work->now_ns);
    bh_ledger_advance(engine, work->now_ns);
    if (half_life_ns != engine->core.half_life_began_ns)
        bh_wake_queue(engine); /* what was used is rounded: the order of tenants may change */
    bh_jobs_reap(engine);
    bh_transition(work, event);
    return BH_OK;
}

/* Whether what a placement took is within the limits as they now stand. */
static bool
step_within_limits(const struct bh_engine *engine, const struct bh_decision *decision)
{
    uint32_t lease = lease_find(engine, decision->lease.v);
    struct bh_search search = { .engine = engine, .past_claims = true };
    struct bh_wanted nothing;

    if (decision->kind != BH_DO_PLACE && decision->kind != BH_DO_RESUME)
        return true;
    BH_ASSERT(lease != 0);
    nothing = bh_quota_to_resume(engine, lease);
    nothing.count = 0;
    nothing.equivalent = 0;
    return bh_quota_permits(&search, &nothing);
}

/* Whether the decision fits, and those that must be in the same record: on the rest of a gang, and on the
 * victims of a claim. */
static bool
step_has_capacity(const struct work *work, const struct bh_decision *decision)
{
    const struct bh_step *step = work->step;
    struct bh_record_needs needs = bh_decide_record(work, decision);

    for (uint32_t i = 0; i < step->decision_count; i++)
        needs.partitions += step->decisions[i].partition_count;
    return step->decision_count + needs.decisions <= BH_DECISIONS_MAX
           && step->effect_count + needs.effects <= BH_EFFECTS_MAX
           && needs.partitions <= BH_DECIDED_PARTITIONS_MAX;
}

/* Decide and apply until nothing more can be decided, or the step is full. */
static void
step_decide_all(struct work *work, bool tick)
{
    struct bh_step *step = work->step;
    struct bh_decision decision;
    bool begun = false; /* there is room for this and what must follow */

    while (bh_decide(work, tick, &decision)) {
        bh_rc rc;

        if (!begun && !step_has_capacity(work, &decision)) {
            step->more = true;
            return;
        }
        begun = bh_decide_begun(work);
        step->decisions[step->decision_count++] = decision;
        rc = bh_apply(work, &decision);
        BH_ASSERT(rc == BH_OK);
        BH_ASSERT(step_within_limits(work->engine, &decision));
    }
}

/* The first time limit, or time to try again to destroy what was stuck, or to carve. */
static uint64_t
step_first_due_ns(const struct bh_engine *engine)
{
    uint64_t next_ns = bh_warm_retry_ns(engine);

    if (bh_layout_retry_ns(engine) < next_ns)
        next_ns = bh_layout_retry_ns(engine);

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        uint64_t deadline_ns = bh_lease_deadline_ns(engine, slot);

        next_ns = deadline_ns < next_ns ? deadline_ns : next_ns;
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        uint64_t retry_ns = bh_gpu_retry_ns(engine, slot);

        next_ns = retry_ns < next_ns ? retry_ns : next_ns;
        retry_ns = bh_health_due_ns(engine, slot);
        next_ns = retry_ns < next_ns ? retry_ns : next_ns;
    }
    return next_ns;
}

static void
step_know_due(struct bh_engine *engine)
{
    if (engine->hints.due_known)
        return;
    engine->hints.due_ns = step_first_due_ns(engine);
    engine->hints.due_known = true;
}

bh_rc
bh_engine_step(struct bh_engine *engine, const struct bh_event *event, struct bh_step *step)
{
    struct work work;
    bh_rc rc;

    BH_ASSERT(bh_sound_core(engine));
    bh_work_init(&work, engine, step);
    rc = step_admit(&work, event);
    if (rc != BH_OK)
        return rc;
    if (bh_decide_due(engine))
        step_decide_all(&work, event->kind == BH_EV_TICK);
    engine->hints.cut = step->more;
    step_know_due(engine);
    return BH_OK;
}

/* What was decided is not known to the hints: look at everything next time.  Candidates stay deferred, so
 * the earliest of their times is to be looked for again (bh_decide_due). */
static void
step_forget_hints(struct bh_engine *engine)
{
    engine->hints.settled = engine->hints.swept = engine->hints.cut = false;
    engine->hints.wake_stale = true;
    engine->hints.hopeless_ns = engine->hints.reserved_until_ns = 0;
    engine->hints.due_known = false;
}

bh_rc
bh_engine_replay(struct bh_engine *engine, const struct bh_event *event, const struct bh_decision *decisions,
                 uint32_t count, struct bh_step *step)
{
    struct work work;
    bh_rc rc;

    bh_work_init(&work, engine, step);
    rc = step_admit(&work, event);
    if (rc != BH_OK)
        return rc;
    if (count > BH_DECISIONS_MAX)
        return BH_CONFLICT;
    for (uint32_t i = 0; i < count; i++) {
        if (decisions[i].partition_count > BH_JOB_COUNT_MAX)
            return BH_CONFLICT;
        step->decisions[step->decision_count++] = decisions[i];
        if (step->effect_count + bh_decide_effects(engine, &decisions[i]) > BH_EFFECTS_MAX)
            return BH_CONFLICT;
        rc = bh_apply(&work, &decisions[i]);
        if (rc != BH_OK)
            return rc;
    }
    step_forget_hints(engine);
    return work.rest.members == 0 ? BH_OK : BH_CONFLICT;
}

/* Keep the `max` effects with the lowest numbers, in order. */
static void
step_insert(struct bh_effect *effects, uint32_t *count, uint32_t max, const struct bh_effect *effect)
{
    uint32_t at = *count;

    while (at > 0 && effects[at - 1].order > effect->order)
        at--;
    if (at == max)
        return;
    if (*count < max)
        ++*count;
    for (uint32_t i = *count - 1; i > at; i--)
        effects[i] = effects[i - 1];
    effects[at] = *effect;
}

uint32_t
bh_engine_outstanding(const struct bh_engine *engine, bh_node_id node, struct bh_effect *ret_effects,
                      uint32_t max)
{
    struct bh_effect effect;
    uint32_t count = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        if (!lease_at(engine, slot)->waiting)
            continue;
        bh_effect_of_lease(engine, slot, &effect);
        if (node.v == 0 || bh_same(effect.node, node))
            step_insert(ret_effects, &count, max, &effect);
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_PARTITION, &slot);) {
        if (!partition_at(engine, slot)->waiting)
            continue;
        bh_effect_of_partition(engine, slot, &effect);
        if (node.v == 0 || bh_same(effect.node, node))
            step_insert(ret_effects, &count, max, &effect);
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        if (!gpu_at(engine, slot)->health.waiting)
            continue;
        bh_effect_of_gpu(engine, slot, &effect);
        if (node.v == 0 || bh_same(effect.node, node))
            step_insert(ret_effects, &count, max, &effect);
    }
    return count;
}

bool
bh_engine_awaits(const struct bh_engine *engine, const struct bh_effect *effect)
{
    uint32_t partition = partition_find(engine, effect->partition.partition.v);
    uint32_t lease = lease_find(engine, effect->lease.v);
    const struct gpu *gpu = gpu_at(engine, gpu_find(engine, effect->partition.gpu.v));

    if (effect->kind == BH_FX_RESET || effect->kind == BH_FX_TEST)
        return gpu->health.waiting == effect->kind + 1 && gpu->health.order == effect->order;
    if (effect->kind == BH_FX_CARVE || effect->kind == BH_FX_DESTROY)
        return partition && partition_at(engine, partition)->waiting == effect->kind + 1
               && partition_at(engine, partition)->order == effect->order;
    return lease && lease_at(engine, lease)->waiting == effect->kind + 1
           && lease_at(engine, lease)->order == effect->order;
}

uint64_t
bh_engine_next_tick_ns(const struct bh_engine *engine)
{
    uint64_t next_ns = engine->hints.wake_ns ? engine->hints.wake_ns : UINT64_MAX;
    uint64_t due_ns;

    if (!engine->hints.settled || engine->hints.cut || engine->hints.hopeless_ns == 0)
        return engine->core.now_ns;
    if (engine->hints.hopeless_ns < next_ns)
        next_ns = engine->hints.hopeless_ns;
    if (engine->hints.reserved_until_ns && engine->hints.reserved_until_ns < next_ns)
        next_ns = engine->hints.reserved_until_ns;
    due_ns = engine->hints.due_known ? engine->hints.due_ns : step_first_due_ns(engine);
    return due_ns < next_ns ? due_ns : next_ns;
}
