#include "engine/gpu/exclusive.h"

#include "base/assert.h"
#include "engine/state/slots.h"

static bool
taken_by_others(const struct bh_search *search, uint64_t gpu_id, uint32_t *ret_neighbor)
{
    for (uint32_t i = 0; i < search->taking_count; i++) {
        const struct bh_taking *taking = &search->taking[i];

        if (taking->placement.gpu != gpu_id || job_at(search->engine, taking->job)->tenant == search->tenant)
            continue;
        *ret_neighbor = taking->job;
        return true;
    }
    return false;
}

static bool
exclusive_may_carve(const struct bh_search *search, uint32_t slot, uint32_t *ret_neighbor)
{
    const struct bh_engine *engine = search->engine;
    const struct gpu *gpu = gpu_at(engine, slot);

    BH_ASSERT(gpu->id != 0);
    if (!gpu->lone_carve)
        return true;
    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        uint32_t holder = partition_at(engine, at)->lease;

        if (!holder || lease_at(engine, holder)->tenant == search->tenant
            || bh_capacity_is_gone(search, holder))
            continue;
        *ret_neighbor = lease_at(engine, holder)->job;
        return false;
    }
    return !taken_by_others(search, gpu->id, ret_neighbor);
}

bool
bh_exclusive_may_stand(const struct bh_search *search, uint32_t gpu, uint32_t profile, uint32_t *ret_neighbor)
{
    return bh_profile_is_share((bh_profile_id){ profile }) || exclusive_may_carve(search, gpu, ret_neighbor);
}

bool
bh_exclusive_with(const struct bh_engine *engine, uint32_t slot, uint32_t tenant_id)
{
    struct bh_search search = { .engine = engine, .tenant = tenant_find(engine, tenant_id) };
    uint32_t beside;

    return exclusive_may_carve(&search, slot, &beside);
}

uint32_t
bh_exclusive_ready(const struct bh_search *search, uint32_t slot, uint32_t profile_id,
                   const struct bh_occupancy *occupancy)
{
    const struct bh_engine *engine = search->engine;
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    const struct gpu *gpu = gpu_at(engine, slot);
    uint32_t best = 0;

    for (uint32_t at = gpu->idle && profile ? gpu->first_partition : 0; at;) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->state == BH_PARTITION_IDLE && partition->profile == profile_id
            && (partition->tenant == 0 || partition->tenant == tenant_at(engine, search->tenant)->id)
            && bh_occupancy_fits(occupancy, profile, partition->start)
            && (!best || partition->start < partition_at(engine, best)->start))
            best = at;
        at = partition->next_on_gpu;
    }
    return best;
}
