#include "engine/queue/avoid.h"

#include "base/assert.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

#define AVOID_NS 5000000000ull
#define SCRATCH_NS 30000000000ull

static struct class *
class_of(const struct bh_engine *engine, uint32_t job)
{
    return class_at(engine, job_at(engine, job)->class);
}

void
bh_avoid(struct work *work, uint32_t job, uint32_t gpu, uint32_t node)
{
    struct class *class = class_of(work->engine, job);

    BH_ASSERT(class->id != 0 && job_at(work->engine, job)->state == BH_JOB_PENDING);
    class->avoid_gpu = gpu;
    class->avoid_node = node;
    class->avoid_generation = work->engine->core.generation;
    class->avoid_until_ns = work->now_ns + AVOID_NS;
}

void
bh_avoid_for_scratch(struct work *work, uint32_t job, uint32_t node, bool before)
{
    struct class *class = class_of(work->engine, job);

    bh_avoid(work, job, 0, before ? BH_AVOID_ALL : (uint32_t)node_at(work->engine, node)->id);
    class->avoid_until_ns = work->now_ns + SCRATCH_NS;
}

void
bh_avoid_left(struct work *work, uint32_t node)
{
    struct bh_engine *engine = work->engine;
    uint64_t soon_ns = work->now_ns + AVOID_NS;

    BH_ASSERT(node_at(engine, node)->id != 0);
    if (!node_at(engine, node)->scratch_short)
        return;
    node_at(engine, node)->scratch_short = 0;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        struct class *class = class_at(engine, slot);

        if (!class->scratch || class->avoid_until_ns <= soon_ns
            || (class->avoid_node != BH_AVOID_ALL && class->avoid_node != node_at(engine, node)->id))
            continue;
        class->avoid_until_ns = soon_ns;
        bh_wake_class(engine, slot);
    }
}

bool
bh_avoid_waits(const struct bh_engine *engine, uint32_t class)
{
    return class_at(engine, class)->scratch && engine->core.now_ns < class_at(engine, class)->avoid_until_ns;
}

bool
bh_avoid_why(const struct bh_search *search, const struct bh_need *need, struct bh_reason *ret_reason)
{
    const struct bh_engine *engine = search->engine;
    const struct class *class = class_of(engine, need->job);
    struct bh_need open = *need;
    struct bh_plan plan;

    open.avoid_gpu = open.avoid_node = 0;
    if (!need->avoid_node || !bh_placement_find(search, &open, &plan, NULL))
        return false;
    *ret_reason = (struct bh_reason){
        .code = class->scratch ? BH_REASON_SCRATCH : BH_REASON_START_FAILED,
        .gpu = { gpu_at(engine, plan.assignments[0].gpu)->id },
        .frees_at_ns = class->avoid_until_ns,
    };
    return true;
}
