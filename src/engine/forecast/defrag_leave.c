#include "engine/forecast/defrag_leave.h"

#include "engine/forecast/defrag_join.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"

/* An operator asked for an empty GPU, and a job is on it. */
static bool
is_to_be_left(const struct bh_engine *engine, const struct gpu *gpu)
{
    return gpu->managed && gpu->cordoned && !gpu->fenced && gpu->leased > 0 && node_at(engine, gpu->node)->up;
}

/* How long it takes until it is empty by itself. */
static uint64_t
stays_ns(const struct bh_engine *engine, const struct gpu *gpu)
{
    uint64_t last_ns = engine->core.now_ns;

    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        uint32_t lease = partition_at(engine, at)->lease;
        uint64_t ends_ns = lease ? bh_lease_ends_ns(engine, lease) : 0;

        last_ns = ends_ns > last_ns ? ends_ns : last_ns;
    }
    return last_ns - engine->core.now_ns;
}

bool
bh_defrag_leave(const struct bh_engine *engine, struct bh_defrag_plan *ret_plan)
{
    uint64_t percent = engine->core.settings.defrag.gain_percent;
    __int128 best = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(engine, slot);
        bh_part_ns gain = (bh_part_ns)BH_GPU_PARTS * stays_ns(engine, gpu);
        struct bh_shift shift;
        struct bh_ev_move move;
        __int128 score;

        if (!is_to_be_left(engine, gpu))
            continue;
        bh_shift_init(&shift, engine);
        if (!bh_shift_empty(&shift, slot) || shift.job_count == 0 || !bh_shift_place(&shift))
            continue;
        score = (__int128)(gain * 100) - (__int128)(shift.cost * percent);
        if (score <= best || !bh_shift_write(&shift, gain, &move))
            continue;
        best = score;
        *ret_plan = (struct bh_defrag_plan){ .move = move,
                                             .capacity = bh_defrag_touched(&shift),
                                             .empties = { (uint32_t)gpu->id } };
    }
    return best > 0;
}
