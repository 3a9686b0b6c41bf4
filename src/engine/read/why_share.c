#include "engine/read/why_share.h"

#include "engine/gpu/capacity.h"
#include "engine/state/slots.h"

static bool
is_shares_alone(const struct sku *sku)
{
    for (uint32_t row = 0; row < sku->model_count; row++)
        if (!bh_profile_is_share((bh_profile_id){ sku->profiles[row] }))
            return false;
    return sku->model_count > 0;
}

bool
bh_why_unshared(const struct bh_engine *engine, uint32_t sku_slot)
{
    const struct sku *sku = sku_at(engine, sku_slot);

    if (!is_shares_alone(sku))
        return false;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(engine, slot);

        for (uint32_t row = 0; row < sku->model_count; row++)
            if (gpu->managed && gpu->model == sku->models[row]
                && bh_capacity_accepts(gpu, sku->profiles[row]))
                return false;
    }
    return true;
}

/* What keeps a share off a GPU. */
enum share_obstacle { NOTHING, ONLY_MEMORY, ANOTHER_MODE, OTHERS };

static enum share_obstacle
obstacle_on(const struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
            uint64_t *ret_free)
{
    struct bh_share share;
    uint32_t kept = bh_share_reserve_parts(model) + bh_share_context_parts(model);
    uint64_t taken = occupancy->share_memory + kept;

    if (!bh_share_get((bh_profile_id){ profile }, &share) || bh_share_capacity(occupancy, model, &share) > 0)
        return NOTHING;
    if (occupancy->units || (occupancy->whole && !occupancy->shared))
        return ANOTHER_MODE;
    *ret_free = taken < BH_GPU_PARTS ? BH_GPU_PARTS - taken : 0;
    return occupancy->share_compute + share.compute <= occupancy->share_limit && *ret_free < share.memory
               ? ONLY_MEMORY
               : OTHERS;
}

/* One GPU by one row; `seen` has a bit for each obstacle that some GPU had. */
static void
why_share_judge(const struct bh_search *search, uint32_t slot, uint32_t profile, uint32_t *seen,
                struct bh_reason *reason)
{
    const struct gpu *gpu = gpu_at(search->engine, slot);
    struct bh_parts parts = bh_profile_parts((bh_profile_id){ profile });
    struct bh_occupancy occupancy;
    enum share_obstacle obstacle;
    uint64_t left = 0;

    bh_capacity_occupancy(search, slot, &occupancy);
    obstacle = obstacle_on(&occupancy, (enum bh_gpu_model)gpu->model, profile, &left);
    if (obstacle == NOTHING || *seen >> ONLY_MEMORY & 1) {
        *seen |= 1u << obstacle;
        return;
    }
    *seen |= 1u << obstacle;
    if (obstacle == ONLY_MEMORY)
        *reason = (struct bh_reason){ .code = BH_REASON_SHARE_MEMORY,
                                      .gpu = { (uint32_t)gpu->id },
                                      .wanted = parts.memory,
                                      .limit = left };
    else if (obstacle == ANOTHER_MODE && reason->code == BH_REASON_NONE)
        *reason = (struct bh_reason){ .code = BH_REASON_SHARE_MODE, .gpu = { (uint32_t)gpu->id } };
}

bool
bh_why_share(const struct bh_search *search, const struct bh_need *need, struct bh_reason *ret_reason)
{
    const struct bh_engine *engine = search->engine;
    const struct sku *sku = sku_at(engine, need->sku);
    struct bh_reason reason = { .code = BH_REASON_NONE };
    uint32_t seen = 0;

    if (!is_shares_alone(sku) || need->count * need->gang > 1)
        return false;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);)
        for (uint32_t row = 0; row < sku->model_count; row++)
            if (bh_capacity_offered(engine, gpu_at(engine, slot))
                && bh_placement_serves(engine, gpu_at(engine, slot), need->tenant, sku, row))
                why_share_judge(search, slot, sku->profiles[row], &seen, &reason);
    if (seen >> NOTHING & 1 || reason.code == BH_REASON_NONE
        || (reason.code == BH_REASON_SHARE_MODE && seen >> OTHERS & 1))
        return false;
    reason.sku.v = (uint32_t)sku->id;
    *ret_reason = reason;
    return true;
}
