#include "engine/gpu/layout.h"

#include "base/assert.h"
#include "engine/gpu/capacity.h"
#include "engine/gpu/exclusive.h"
#include "engine/gpu/partition.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

/* After a carve that failed once all stood. */
#define RETRY_NS UINT64_C(60000000000)

static bool
layout_has(const struct gpu_layout *gpu_layout, uint32_t profile, uint32_t start)
{
    for (uint32_t i = 0; i < gpu_layout->count; i++)
        if (gpu_layout->profiles[i] == profile && gpu_layout->starts[i] == start)
            return true;
    return false;
}

static bool
layout_is_under_way(const struct gpu *gpu)
{
    return gpu->gpu_layout == BH_LAYOUT_APPLYING || gpu->gpu_layout == BH_LAYOUT_UNDOING;
}

static void
layout_want(struct bh_engine *engine, struct gpu *gpu, const struct gpu_layout *wanted)
{
    BH_ASSERT(gpu->id != 0 && wanted->count <= BH_LAYOUT_MAX && wanted->mode < BH_LAYOUT_MODES);
    BH_ASSERT(engine->core.declared >= (gpu->wanted.mode != BH_LAYOUT_UNDECLARED));
    engine->core.declared -= gpu->wanted.mode != BH_LAYOUT_UNDECLARED;
    gpu->wanted = *wanted;
    if (!wanted->mode && gpu->share_limit)
        bh_wake_queue(engine); /* it may be shared again */
    engine->core.declared += gpu->wanted.mode != BH_LAYOUT_UNDECLARED;
    engine->hints.settled = false;
}

/* ---- declaring ---- */

/* What stands there now, to be made once again should the change fail. */
static struct gpu_layout
layout_present(const struct bh_engine *engine, const struct gpu *gpu)
{
    struct gpu_layout gpu_layout = { .mode = BH_LAYOUT_ONCE };

    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->state == BH_PARTITION_CLEARING
            || !bh_profile_get((bh_profile_id){ partition->profile }) || gpu_layout.count == BH_LAYOUT_MAX)
            continue;
        gpu_layout.profiles[gpu_layout.count] = (uint8_t)partition->profile;
        gpu_layout.starts[gpu_layout.count++] = (uint8_t)partition->start;
    }
    return gpu_layout;
}

static struct gpu_layout
layout_from_event(const struct bh_ev_layout *event)
{
    struct gpu_layout gpu_layout = { .mode = (uint8_t)event->mode };

    for (uint32_t i = 0; i < event->partition_count; i++) {
        gpu_layout.profiles[i] = (uint8_t)event->partitions[i].profile;
        gpu_layout.starts[i] = (uint8_t)event->partitions[i].start;
    }
    gpu_layout.count = (uint8_t)event->partition_count;
    return gpu_layout;
}

void
bh_layout_set(struct work *work, const struct bh_ev_layout *event)
{
    struct bh_engine *engine = work->engine;
    uint32_t slot = gpu_find(engine, event->gpu.v);
    struct gpu *gpu = gpu_at(engine, slot);
    struct gpu_layout wanted = layout_from_event(event);

    BH_ASSERT(slot != 0);
    BH_ASSERT(event->partition_count <= BH_LAYOUT_MAX);
    if (!layout_is_under_way(gpu)) /* else the last state that was whole stays the one to go back to */
        gpu->before = gpu->wanted.mode == BH_LAYOUT_DECLARED ? gpu->wanted : layout_present(engine, gpu);
    layout_want(engine, gpu, &wanted);
    gpu->apply = engine->core.applied = event->apply;
    gpu->gpu_layout = wanted.mode ? BH_LAYOUT_APPLYING : BH_LAYOUT_NONE;
    gpu->layout_rc = 0;
    gpu->layout_retry_ns = 0;
    engine->hints.due_known = false;
    bh_layout_update(engine, slot);
}

bh_rc
bh_layout_admit(const struct bh_engine *engine, const struct bh_ev_layout *event, struct bh_reason *ret_why)
{
    uint32_t slot = gpu_find(engine, event->gpu.v), last = engine->core.applied;
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_occupancy occupancy = { 0 };

    ret_why->code = BH_REASON_OUT_OF_RANGE;
    ret_why->gpu = event->gpu;
    if (!slot)
        return BH_NOT_FOUND;
    if ((uint32_t)event->mode >= BH_LAYOUT_MODES || event->partition_count > BH_LAYOUT_MAX
        || event->apply == 0 || event->apply == UINT32_MAX || event->apply < last || event->apply > last + 1)
        return BH_RANGE;
    if (event->partition_count && (!gpu->mig_capable || event->mode == BH_LAYOUT_UNDECLARED))
        return BH_RANGE;
    for (uint32_t i = 0; i < event->partition_count; i++) {
        const struct bh_profile *profile = bh_profile_get((bh_profile_id){ event->partitions[i].profile });

        if (!profile || (uint32_t)profile->model != gpu->model || profile->id.v >= PROFILES_MAX
            || !bh_occupancy_fits(&occupancy, profile, event->partitions[i].start))
            return BH_RANGE;
        bh_occupancy_add(&occupancy, profile, event->partitions[i].start);
    }
    return BH_OK;
}

/* ---- making it so ---- */

/* What is made on a GPU with a fault would be in the way of its reset, or go with it. */
static bool
layout_can_be_changed(const struct bh_engine *engine, const struct gpu *gpu)
{
    return gpu->managed && !gpu->fenced && bh_capacity_is_healthy(gpu) && node_at(engine, gpu->node)->up;
}

bool
bh_layout_contains(const struct bh_engine *engine, uint32_t slot, const struct bh_partition *decided)
{
    const struct gpu *gpu = gpu_at(engine, slot);

    return gpu->wanted.mode && layout_can_be_changed(engine, gpu)
           && layout_has(&gpu->wanted, decided->profile, decided->start);
}

/* Whether the partition stands there, or will when it is carved. */
static bool
layout_is_ready(const struct bh_engine *engine, const struct gpu *gpu, uint32_t profile, uint32_t start,
                bool carved)
{
    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->profile == profile && partition->start == start && !partition->gone
            && (partition->state == BH_PARTITION_IDLE || partition->state == BH_PARTITION_LEASED
                || (!carved && partition->state == BH_PARTITION_CARVING)))
            return true;
    }
    return false;
}

/* An idle partition that is not wanted, while that is being seen to. */
static uint32_t
layout_find_unwanted(const struct bh_engine *engine, const struct gpu *gpu)
{
    for (uint32_t at = layout_is_under_way(gpu) && gpu->idle ? gpu->first_partition : 0; at;
         at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->state == BH_PARTITION_IDLE
            && !layout_has(&gpu->wanted, partition->profile, partition->start))
            return at;
    }
    return 0;
}

/* One that is wanted, missing, and has room. */
static bool
layout_find_missing(const struct bh_engine *engine, uint32_t slot, struct bh_partition *ret_partition)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_search search = { .engine = engine };
    struct bh_occupancy occupancy;

    if (bh_slots_free(engine, TABLE_PARTITION) == 0)
        return false;
    bh_capacity_occupancy(&search, slot, &occupancy);
    for (uint32_t i = 0; i < gpu->wanted.count; i++) {
        uint32_t profile = gpu->wanted.profiles[i], start = gpu->wanted.starts[i];

        if (layout_is_ready(engine, gpu, profile, start, false)
            || !bh_occupancy_fits(&occupancy, bh_profile_get((bh_profile_id){ profile }), start))
            continue;
        *ret_partition = (struct bh_partition){
            { engine->core.next_partition }, { (uint32_t)gpu->id }, profile, start, true
        };
        return true;
    }
    return false;
}

static bool
layout_may_change(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);

    BH_ASSERT(gpu->wanted.mode < BH_LAYOUT_MODES && gpu->wanted.count <= BH_LAYOUT_MAX);
    return gpu->wanted.mode && gpu->gpu_layout != BH_LAYOUT_FAILED && !gpu->layout_retry_ns
           && gpu->mig_capable && layout_can_be_changed(engine, gpu) && bh_exclusive_with(engine, slot, 0);
}

bool
bh_layout_decide(const struct work *work, struct bh_decision *ret_decision)
{
    const struct bh_engine *engine = work->engine;

    for (uint32_t slot = 0; engine->core.declared && bh_slot_next(engine, TABLE_GPU, &slot);) {
        uint32_t unwanted;
        struct bh_partition decided;

        if (!layout_may_change(engine, slot))
            continue;
        unwanted = layout_find_unwanted(engine, gpu_at(engine, slot));
        if (unwanted) {
            const struct partition *partition = partition_at(engine, unwanted);

            decided = (struct bh_partition){ { partition->id },
                                             { (uint32_t)gpu_at(engine, slot)->id },
                                             partition->profile,
                                             partition->start,
                                             false };
        } else if (!layout_find_missing(engine, slot, &decided)) {
            continue;
        }
        *ret_decision = (struct bh_decision){ .kind = unwanted ? BH_DO_CLEAR : BH_DO_WARM,
                                              .partition_count = 1,
                                              .partitions = { decided } };
        return true;
    }
    return false;
}

bh_rc
bh_layout_clear(struct work *work, const struct bh_decision *decision)
{
    const struct bh_partition *decided = &decision->partitions[0];
    uint32_t slot = partition_find(work->engine, decided->partition.v);
    const struct partition *partition = partition_at(work->engine, slot);

    if (decision->partition_count != 1 || decision->job.v || decision->lease.v || decided->carve || !slot
        || partition->state != BH_PARTITION_IDLE || partition->profile != decided->profile
        || partition->start != decided->start || gpu_at(work->engine, partition->gpu)->id != decided->gpu.v
        || !bh_exclusive_with(work->engine, partition->gpu, 0))
        return BH_CONFLICT;
    bh_partition_clear(work, slot, 0);
    return BH_OK;
}

/* ---- how it went ---- */

static bool
layout_is_complete(const struct bh_engine *engine, const struct gpu *gpu)
{
    for (uint32_t i = 0; i < gpu->wanted.count; i++)
        if (!layout_is_ready(engine, gpu, gpu->wanted.profiles[i], gpu->wanted.starts[i], true))
            return false;
    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->state == BH_PARTITION_CLEARING
            || (partition->state == BH_PARTITION_IDLE
                && !layout_has(&gpu->wanted, partition->profile, partition->start)))
            return false;
    }
    return true;
}

void
bh_layout_update(struct bh_engine *engine, uint32_t slot)
{
    static const struct gpu_layout nothing;
    struct gpu *gpu = gpu_at(engine, slot);
    bool once = gpu->wanted.mode == BH_LAYOUT_ONCE;

    BH_ASSERT(gpu->id != 0 && gpu->gpu_layout < BH_LAYOUT_STATES);
    BH_ASSERT(gpu->wanted.count <= BH_LAYOUT_MAX);
    if (!layout_is_under_way(gpu) || !layout_is_complete(engine, gpu))
        return;
    if (gpu->gpu_layout == BH_LAYOUT_UNDOING)
        gpu->gpu_layout = BH_LAYOUT_UNDONE;
    else
        gpu->gpu_layout = once ? BH_LAYOUT_NONE : BH_LAYOUT_READY;
    if (once)
        layout_want(engine, gpu, &nothing);
}

/* All GPUs of the change go back. */
static void
layout_undo(struct bh_engine *engine, uint32_t apply)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        struct gpu *gpu = gpu_at(engine, slot);

        if (gpu->apply != apply
            || (gpu->gpu_layout != BH_LAYOUT_APPLYING && gpu->gpu_layout != BH_LAYOUT_READY))
            continue;
        layout_want(engine, gpu, &gpu->before);
        gpu->gpu_layout = BH_LAYOUT_UNDOING;
        bh_layout_update(engine, slot);
    }
}

bool
bh_layout_failed(struct work *work, uint32_t partition_slot, uint32_t rc)
{
    static const struct gpu_layout nothing;
    struct bh_engine *engine = work->engine;
    struct gpu *gpu = gpu_at(engine, partition_at(engine, partition_slot)->gpu);

    BH_ASSERT(gpu->id != 0 && gpu->wanted.mode < BH_LAYOUT_MODES);
    if (!gpu->wanted.mode)
        return false;
    gpu->layout_rc = rc && rc < UINT8_MAX ? (uint8_t)rc : BH_IO;
    if (gpu->gpu_layout == BH_LAYOUT_APPLYING) {
        layout_undo(engine, gpu->apply);
    } else if (gpu->gpu_layout == BH_LAYOUT_UNDOING) {
        gpu->gpu_layout = BH_LAYOUT_FAILED;
        layout_want(engine, gpu, &nothing);
    } else {
        gpu->layout_retry_ns = work->now_ns + RETRY_NS;
        engine->hints.due_known = false;
    }
    return true;
}

uint64_t
bh_layout_retry_ns(const struct bh_engine *engine)
{
    uint64_t next_ns = UINT64_MAX;

    for (uint32_t slot = 0; engine->core.declared && bh_slot_next(engine, TABLE_GPU, &slot);) {
        uint64_t retry_ns = gpu_at(engine, slot)->layout_retry_ns;

        next_ns = retry_ns && retry_ns < next_ns ? retry_ns : next_ns;
    }
    return next_ns;
}

void
bh_layout_tick(struct bh_engine *engine)
{
    for (uint32_t slot = 0; engine->core.declared && bh_slot_next(engine, TABLE_GPU, &slot);) {
        struct gpu *gpu = gpu_at(engine, slot);

        if (!gpu->layout_retry_ns || gpu->layout_retry_ns > engine->core.now_ns)
            continue;
        gpu->layout_retry_ns = 0;
        engine->hints.due_known = false;
    }
}

/* ---- invariants ---- */

static bool
layout_can_stand(const struct gpu *gpu, const struct gpu_layout *gpu_layout)
{
    struct bh_occupancy occupancy = { 0 };

    for (uint32_t i = 0; i < gpu_layout->count; i++) {
        const struct bh_profile *profile = bh_profile_get((bh_profile_id){ gpu_layout->profiles[i] });

        if (!profile || (uint32_t)profile->model != gpu->model
            || !bh_occupancy_fits(&occupancy, profile, gpu_layout->starts[i]))
            return false;
        bh_occupancy_add(&occupancy, profile, gpu_layout->starts[i]);
    }
    return true;
}

const char *
bh_layout_check(const struct bh_engine *engine, uint64_t *ret_gpu)
{
    uint32_t declared = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(engine, slot);

        *ret_gpu = gpu->id;
        declared += gpu->wanted.mode != BH_LAYOUT_UNDECLARED;
        if (!layout_can_stand(gpu, &gpu->wanted))
            return "what is declared cannot stand on it";
        if ((layout_is_under_way(gpu) || gpu->gpu_layout == BH_LAYOUT_READY) && !gpu->wanted.mode)
            return "a layout is made that is not wanted";
        if (gpu->apply > engine->core.applied)
            return "its layout is of a change to come";
    }
    *ret_gpu = declared;
    return declared == engine->core.declared ? NULL : "declared layouts are miscounted";
}
