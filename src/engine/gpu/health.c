#include "engine/gpu/health.h"

#include <string.h>

#include "base/assert.h"
#include "engine/gpu/ledger.h"
#include "engine/gpu/partition.h"
#include "engine/state/effect.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

enum { SERVED_MAX = 64 }; /* GPUs that are gone on with in one step */

/* ---- the table ---- */

#define TO(state) BH_HEALTH_##state

/* The columns: NOTHING COUNT WATCH RESET_IDLE DRAIN RESET REBOOT RETIRE MENDED. */
static const uint8_t rules[BH_HEALTHS][BH_FAULT_THENS] = {
    [TO(OK)] = { TO(OK), TO(OK), TO(WATCHED), TO(WATCHED), TO(DRAINING), TO(FENCED), TO(NEEDS_REBOOT),
                 TO(QUARANTINED), TO(OK) },
    [TO(WATCHED)] = { TO(WATCHED), TO(WATCHED), TO(WATCHED), TO(WATCHED), TO(DRAINING), TO(FENCED),
                      TO(NEEDS_REBOOT), TO(QUARANTINED), TO(WATCHED) },
    [TO(DRAINING)] = { TO(DRAINING), TO(DRAINING), TO(DRAINING), TO(DRAINING), TO(DRAINING), TO(FENCED),
                       TO(NEEDS_REBOOT), TO(QUARANTINED), TO(DRAINING) },
    [TO(FENCED)] = { TO(FENCED), TO(FENCED), TO(FENCED), TO(FENCED), TO(FENCED), TO(FENCED), TO(NEEDS_REBOOT),
                     TO(QUARANTINED), TO(FENCED) },
    /* a reset brings XIDs of its own */
    [TO(RESETTING)] = { TO(RESETTING), TO(RESETTING), TO(RESETTING), TO(RESETTING), TO(RESETTING),
                        TO(RESETTING), TO(NEEDS_REBOOT), TO(QUARANTINED), TO(RESETTING) },
    [TO(TESTING)] = { TO(TESTING), TO(TESTING), TO(TESTING), TO(DRAINING), TO(DRAINING), TO(FENCED),
                      TO(NEEDS_REBOOT), TO(QUARANTINED), TO(TESTING) },
    [TO(BURN_IN)] = { TO(BURN_IN), TO(BURN_IN), TO(BURN_IN), TO(DRAINING), TO(DRAINING), TO(FENCED),
                      TO(NEEDS_REBOOT), TO(QUARANTINED), TO(BURN_IN) },
    [TO(WAITING)] = { TO(WAITING), TO(WAITING), TO(WAITING), TO(WAITING), TO(WAITING), TO(WAITING),
                      TO(NEEDS_REBOOT), TO(QUARANTINED), TO(WAITING) },
    [TO(NEEDS_REBOOT)] = { TO(NEEDS_REBOOT), TO(NEEDS_REBOOT), TO(NEEDS_REBOOT), TO(NEEDS_REBOOT),
                           TO(NEEDS_REBOOT), TO(NEEDS_REBOOT), TO(NEEDS_REBOOT), TO(QUARANTINED),
                           TO(TESTING) },
    [TO(QUARANTINED)] = { TO(QUARANTINED), TO(QUARANTINED), TO(QUARANTINED), TO(QUARANTINED), TO(QUARANTINED),
                          TO(QUARANTINED), TO(QUARANTINED), TO(QUARANTINED), TO(QUARANTINED) },
};
#undef TO

enum bh_gpu_health
bh_health_after(enum bh_gpu_health state, enum bh_fault_then then)
{
    BH_ASSERT((uint32_t)state < BH_HEALTHS);
    BH_ASSERT((uint32_t)then < BH_FAULT_THENS);
    return (enum bh_gpu_health)rules[state][then];
}

/* ---- states ---- */

static bool
health_wants_service(const struct gpu_health *health)
{
    return health->state == BH_HEALTH_DRAINING || health->state == BH_HEALTH_FENCED
           || (health->state == BH_HEALTH_TESTING && !health->waiting)
           || (health->state == BH_HEALTH_WATCHED && health->reset_due);
}

static void
health_count(struct bh_engine *engine, struct gpu_health *health)
{
    bool now = health_wants_service(health);

    BH_ASSERT(health->state < BH_HEALTHS && health->served <= 1);
    BH_ASSERT(engine->core.to_service >= health->served);
    engine->core.to_service += (uint32_t)now - (uint32_t)health->served;
    health->served = now;
}

static uint64_t
health_until_ns(const struct work *work, enum bh_gpu_health state, const struct gpu_health *health)
{
    uint64_t now_ns = work->now_ns;

    if (state == BH_HEALTH_WATCHED)
        return now_ns + BH_HEALTH_DAY_NS;
    if (state == BH_HEALTH_BURN_IN)
        return now_ns + work->engine->core.settings.burn_in_ns;
    if (state == BH_HEALTH_WAITING)
        return now_ns + (BH_HEALTH_RETRY_NS << (health->attempts - 1));
    return 0;
}

/* A node one of whose GPUs needs a reboot gets no new work at all. */
static void
health_refresh_node(struct bh_engine *engine, uint32_t node)
{
    for (uint32_t at = node_at(engine, node)->first_gpu; at; at = bh_gpu_after(engine, at))
        bh_ledger_refresh(engine, at);
}

static void
health_enter(struct work *work, uint32_t slot, enum bh_gpu_health next)
{
    struct bh_engine *engine = work->engine;
    struct gpu *gpu = gpu_at(engine, slot);
    struct gpu_health *health = &gpu->health;
    struct node *node = node_at(engine, gpu->node);
    bool before = health->state == BH_HEALTH_NEEDS_REBOOT;

    BH_ASSERT((uint32_t)next < BH_HEALTHS);
    BH_ASSERT(gpu->id != 0 && node->id != 0);
    BH_ASSERT(health->state < BH_HEALTHS);
    BH_ASSERT(!before || node->reboots > 0);
    engine->core.health_moves += health->state != next;
    health->state = (uint8_t)next;
    health->since_ns = work->now_ns;
    health->until_ns = health_until_ns(work, next, health);
    if (next == BH_HEALTH_OK)
        health->xid = health->sign = health->attempts = 0;
    if (next == BH_HEALTH_OK || next == BH_HEALTH_TESTING) /* reset, rebooted, or people say so */
        health->reset_due = 0;
    health_count(engine, health);
    node->reboots += (uint32_t)(next == BH_HEALTH_NEEDS_REBOOT) - (uint32_t)before;
    if (before != (next == BH_HEALTH_NEEDS_REBOOT))
        health_refresh_node(engine, gpu->node);
    else
        bh_ledger_refresh(engine, slot);
    engine->hints.due_known = engine->hints.swept = false;
    bh_wake_window(engine);
}

/* ---- faults ---- */

/* Those whose lease must end. */
static void
health_evict(struct bh_engine *engine, uint32_t slot, const struct bh_ev_health *fault)
{
    BH_ASSERT(gpu_at(engine, slot)->id != 0);
    BH_ASSERT((uint32_t)fault->ends < BH_FAULT_ENDS);
    for (uint32_t at = gpu_at(engine, slot)->first_partition; at; at = bh_partition_after(engine, at)) {
        struct partition *partition = partition_at(engine, at);

        if (partition->lease
            && (fault->ends == BH_ENDS_GPU
                || (fault->ends == BH_ENDS_INSTANCE && partition->id == fault->partition.v)))
            partition->evict = BH_END_GPU_FAULT;
    }
    engine->hints.swept = engine->hints.settled = false;
}

/* The job that met a fault that may be the application's: the one on that partition, or on the GPU when it is
 * the only one. */
static uint64_t
health_job_hit(const struct bh_engine *engine, uint32_t slot, bh_partition_id only)
{
    uint64_t found = 0;

    for (uint32_t at = gpu_at(engine, slot)->first_partition; at; at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);
        uint64_t job = job_at(engine, lease_at(engine, partition->lease)->job)->id;

        if (job == 0 || (only.v && partition->id != only.v))
            continue;
        if (found && found != job)
            return 0;
        found = job;
    }
    return found;
}

/* Whether it is the third job within a day; and remember it. */
static bool
health_third_strike(struct work *work, struct gpu_health *health, uint64_t job)
{
    uint32_t others = 0, at = 0;

    BH_ASSERT(health->state < BH_HEALTHS);
    if (job == 0)
        return false;
    for (uint32_t i = 0; i < HEALTH_STRIKES; i++) {
        bool recent = health->strikes_ns[i] != 0 && work->now_ns - health->strikes_ns[i] < BH_HEALTH_DAY_NS;

        if (recent && health->strikes_job[i] == job)
            return false;
        others += recent;
        if (health->strikes_ns[i] < health->strikes_ns[at])
            at = i;
    }
    health->strikes_ns[at] = work->now_ns;
    health->strikes_job[at] = job;
    return others == HEALTH_STRIKES;
}

/* Waiting again from now on where it is watched already. */
static bool
health_begins_anew(enum bh_gpu_health state, enum bh_fault_then then)
{
    return (state == BH_HEALTH_WATCHED || state == BH_HEALTH_BURN_IN)
           && (then == BH_THEN_WATCH || then == BH_THEN_RESET_IDLE);
}

void
bh_health_fault(struct work *work, const struct bh_ev_health *fault)
{
    uint32_t slot = gpu_find(work->engine, fault->gpu.v);
    struct gpu_health *health = &gpu_at(work->engine, slot)->health;
    enum bh_gpu_health state = (enum bh_gpu_health)health->state, next;
    enum bh_fault_then then = fault->then;

    BH_ASSERT(slot != 0);
    BH_ASSERT(health->state < BH_HEALTHS);
    if (then == BH_THEN_COUNT)
        then = health_third_strike(work, health, health_job_hit(work->engine, slot, fault->partition))
                   ? BH_THEN_DRAIN
                   : BH_THEN_NOTHING;
    if (fault->ends != BH_ENDS_NOBODY) /* else it may be but a record: nothing changes */
        health_evict(work->engine, slot, fault);
    next = bh_health_after(state, then);
    if (then == BH_THEN_RESET_IDLE && next == BH_HEALTH_WATCHED)
        health->reset_due = 1;
    if (next != state || health_begins_anew(state, then)) {
        if (then != BH_THEN_RECOVERED) {
            health->xid = fault->xid;
            health->sign = fault->sign;
        }
        health_enter(work, slot, next);
    }
    health_count(work->engine, health);
}

enum bh_end_cause
bh_health_ends(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);

    for (uint32_t i = 0; i < lease->count; i++) {
        const struct partition *partition = partition_at(engine, lease->parts[i]);
        const struct gpu *gpu = gpu_at(engine, gpu_find(engine, lease->placements[i].gpu));

        if (partition->evict)
            return (enum bh_end_cause)partition->evict;
        if (gpu->held == BH_HELD_DRAIN_NOW || node_at(engine, gpu->node)->held == BH_HELD_DRAIN_NOW)
            return BH_END_DRAINED;
        /* it would wait for its old place for ever */
        if (lease->state == LEASE_SUSPENDED
            && (gpu->health.state == BH_HEALTH_QUARANTINED || gpu->health.state == BH_HEALTH_NEEDS_REBOOT))
            return BH_END_GPU_FAULT;
    }
    return BH_END_NONE;
}

/* ---- service ---- */

static void
health_order(struct work *work, uint32_t slot, enum bh_effect_kind kind)
{
    BH_ASSERT(gpu_at(work->engine, slot)->health.waiting == 0);
    bh_effect_gpu(work, kind, slot);
    health_count(work->engine, &gpu_at(work->engine, slot)->health);
}

static uint32_t
health_recent_resets(const struct work *work, const struct gpu_health *health)
{
    uint32_t recent = 0;

    for (uint32_t i = 0; i < HEALTH_RESETS; i++)
        recent += health->resets_ns[i] != 0 && work->now_ns - health->resets_ns[i] < BH_HEALTH_DAY_NS;
    return recent;
}

/* Whether a job has or gets a partition of it. */
static bool
health_is_in_use(const struct bh_engine *engine, const struct gpu *gpu)
{
    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->state == BH_PARTITION_LEASED
            || partition_at(engine, at)->state == BH_PARTITION_CARVING)
            return true;
    return false;
}

/* Destroy what is idle.  True: nothing is left, except what could not be destroyed. */
static bool
health_empty(struct work *work, uint32_t slot)
{
    bool done = true;

    BH_ASSERT(gpu_at(work->engine, slot)->leased == 0);
    for (uint32_t at = gpu_at(work->engine, slot)->first_partition; at;) {
        const struct partition *partition = partition_at(work->engine, at);
        uint32_t next = partition->next_on_gpu;

        if (partition->state == BH_PARTITION_IDLE)
            bh_partition_clear(work, at, 0);
        done = done && partition->stuck && !partition->waiting;
        at = next;
    }
    return done;
}

static void
health_serve(struct work *work, uint32_t slot)
{
    struct gpu *gpu = gpu_at(work->engine, slot);
    struct gpu_health *health = &gpu->health;

    BH_ASSERT(gpu->id != 0 && health->served);
    BH_ASSERT(health->state < BH_HEALTHS);
    if (health->waiting)
        return;
    if (health->state == BH_HEALTH_TESTING) {
        health_order(work, slot, BH_FX_TEST);
        return;
    }
    if (!gpu->managed || health_is_in_use(work->engine, gpu))
        return;
    if (health->state == BH_HEALTH_WATCHED)
        health_enter(work, slot, BH_HEALTH_DRAINING);
    if (!health_empty(work, slot))
        return;
    if (health_recent_resets(work, health) == HEALTH_RESETS) {
        health_enter(work, slot, BH_HEALTH_QUARANTINED);
        return;
    }
    health_enter(work, slot, BH_HEALTH_RESETTING);
    health_order(work, slot, BH_FX_RESET);
}

static void
health_expire(struct work *work, uint32_t slot)
{
    struct gpu_health *health = &gpu_at(work->engine, slot)->health;

    BH_ASSERT(health->until_ns != 0 && health->until_ns <= work->now_ns);
    if (health->state == BH_HEALTH_WAITING)
        health_enter(work, slot, BH_HEALTH_FENCED);
    else if (health->reset_due)
        health->until_ns = 0; /* until it is idle */
    else
        health_enter(work, slot, BH_HEALTH_OK);
    work->engine->hints.due_known = false;
}

void
bh_health_advance(struct work *work, bool tick)
{
    struct bh_engine *engine = work->engine;
    uint32_t served = 0;

    if (!tick && engine->core.to_service == 0)
        return;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot) && served < SERVED_MAX;) {
        const struct gpu_health *health = &gpu_at(engine, slot)->health;

        BH_ASSERT(health->served == health_wants_service(health));
        if (tick && health->until_ns && health->until_ns <= work->now_ns)
            health_expire(work, slot);
        if (!health->served)
            continue;
        health_serve(work, slot);
        served++;
    }
}

uint64_t
bh_health_due_ns(const struct bh_engine *engine, uint32_t slot)
{
    uint64_t due_ns = gpu_at(engine, slot)->health.until_ns;

    return due_ns ? due_ns : UINT64_MAX;
}

/* Nothing that stood on it does. */
static void
health_forget_partitions(struct work *work, uint32_t slot)
{
    for (uint32_t at = gpu_at(work->engine, slot)->first_partition; at;) {
        uint32_t next = partition_at(work->engine, at)->next_on_gpu;

        BH_ASSERT(partition_at(work->engine, at)->state == BH_PARTITION_CLEARING);
        bh_partition_drop(work, at);
        at = next;
    }
}

static void
health_after_reset(struct work *work, uint32_t slot, const struct bh_ev_serviced *answer)
{
    struct gpu_health *health = &gpu_at(work->engine, slot)->health;

    BH_ASSERT(health->state == BH_HEALTH_RESETTING && health->waiting == 0);
    if (answer->outcome == BH_OUTCOME_OK) {
        health_forget_partitions(work, slot);
        memmove(&health->resets_ns[1], &health->resets_ns[0],
                (HEALTH_RESETS - 1) * sizeof health->resets_ns[0]);
        health->resets_ns[0] = work->now_ns;
        health->attempts = 0;
        health_enter(work, slot, BH_HEALTH_TESTING);
        return;
    }
    health->attempts++;
    health_enter(work, slot,
                 answer->rc == BH_UNAVAILABLE || health->attempts > BH_HEALTH_ATTEMPTS_MAX
                     ? BH_HEALTH_QUARANTINED
                     : BH_HEALTH_WAITING);
}

static void
health_after_test(struct work *work, uint32_t slot, const struct bh_ev_serviced *answer)
{
    BH_ASSERT(gpu_at(work->engine, slot)->health.state == BH_HEALTH_TESTING);
    if (answer->outcome != BH_OUTCOME_OK)
        health_enter(work, slot, BH_HEALTH_DRAINING);
    else
        health_enter(work, slot, work->engine->core.settings.burn_in_ns ? BH_HEALTH_BURN_IN : BH_HEALTH_OK);
}

void
bh_health_serviced(struct work *work, const struct bh_ev_serviced *answer)
{
    uint32_t slot = gpu_find(work->engine, answer->gpu.v);
    struct gpu_health *health = &gpu_at(work->engine, slot)->health;
    uint8_t effect = health->waiting;

    BH_ASSERT(slot != 0 && effect != 0);
    BH_ASSERT(health->order != 0);
    health->waiting = 0;
    health->order = 0;
    if (health->state == BH_HEALTH_RESETTING && effect == BH_FX_RESET + 1)
        health_after_reset(work, slot, answer);
    else if (health->state == BH_HEALTH_TESTING && effect == BH_FX_TEST + 1)
        health_after_test(work, slot, answer);
    health_count(work->engine, health);
}

void
bh_health_clear(struct work *work, uint32_t slot)
{
    struct gpu_health *health = &gpu_at(work->engine, slot)->health;
    enum bh_gpu_health state = (enum bh_gpu_health)health->state;

    BH_ASSERT(slot != 0);
    BH_ASSERT(state < BH_HEALTHS);
    memset(health->resets_ns, 0, sizeof health->resets_ns);
    memset(health->strikes_ns, 0, sizeof health->strikes_ns);
    memset(health->strikes_job, 0, sizeof health->strikes_job);
    health->attempts = health->reset_due = 0;
    if (state == BH_HEALTH_OK || state == BH_HEALTH_WATCHED)
        health_enter(work, slot, BH_HEALTH_OK);
    else if (state != BH_HEALTH_RESETTING)
        health_enter(work, slot, BH_HEALTH_TESTING);
}

/* ---- what always holds ---- */

const char *
bh_health_broken(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    const struct gpu_health *health = &gpu->health;

    if (health->state >= BH_HEALTHS)
        return "has no such health";
    if (health->state == BH_HEALTH_RESETTING && health_is_in_use(engine, gpu))
        return "is reset while somebody holds it";
    if (health->state == BH_HEALTH_RESETTING && health->waiting != BH_FX_RESET + 1)
        return "is reset without an order";
    if (health->served != health_wants_service(health))
        return "waits for service uncounted";
    if ((health->state == BH_HEALTH_WAITING || health->state == BH_HEALTH_BURN_IN) && health->until_ns == 0)
        return "waits for ever";
    if (health->reset_due && (health->state == BH_HEALTH_TESTING || health->state == BH_HEALTH_BURN_IN))
        return "is due for the reset that it had";
    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->evict && !partition_at(engine, at)->lease)
            return "has a partition to evict that has no lease";
    return NULL;
}

bool
bh_health_counted(const struct bh_engine *engine)
{
    uint32_t served = 0;
    uint64_t reboots = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        served += gpu_at(engine, slot)->health.served;
        reboots += gpu_at(engine, slot)->health.state == BH_HEALTH_NEEDS_REBOOT;
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);)
        reboots -= node_at(engine, slot)->reboots;
    return served == engine->core.to_service && reboots == 0;
}
