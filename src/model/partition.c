#include "model/partition.h"

#include <string.h>

#include "base/assert.h"

bool
bh_partition_exists(enum bh_gpu_model model, uint32_t profile_id)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    struct bh_share share;

    if (profile)
        return profile->model == model;
    return profile_id == BH_PROFILE_WHOLE.v
           || (bh_share_get((bh_profile_id){ profile_id }, &share) && bh_share_context_parts(model) > 0);
}

uint32_t
bh_partition_starts(uint32_t profile_id)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });

    if (profile)
        return profile->starts;
    return bh_profile_is_share((bh_profile_id){ profile_id }) ? UINT32_MAX : 1;
}

bool
bh_occupancy_is_empty(const struct bh_occupancy *occupancy)
{
    return occupancy->units == 0 && !occupancy->whole;
}

bool
bh_partition_fits(const struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile_id,
                  uint32_t start)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    struct bh_share share;

    if (profile)
        return bh_occupancy_fits(occupancy, profile, start);
    if (bh_share_get((bh_profile_id){ profile_id }, &share))
        return bh_share_fits(occupancy, model, &share, start);
    return bh_occupancy_is_empty(occupancy);
}

void
bh_partition_add(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile_id, uint32_t start)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    struct bh_share share;

    if (profile) {
        bh_occupancy_add(occupancy, profile, start);
        return;
    }
    BH_ASSERT(occupancy->units == 0);
    if (bh_share_get((bh_profile_id){ profile_id }, &share)) {
        BH_ASSERT(!occupancy->whole || occupancy->shared);
        bh_share_add(occupancy, model, &share, start);
        return;
    }
    BH_ASSERT(!occupancy->whole);
    occupancy->whole = true;
}

void
bh_partition_remove(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile_id,
                    uint32_t start)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    struct bh_share share;

    if (profile)
        bh_occupancy_remove(occupancy, profile, start);
    else if (bh_share_get((bh_profile_id){ profile_id }, &share))
        bh_share_remove(occupancy, model, &share, start);
    else
        occupancy->whole = false;
}

/* A slot that two shares would have is counted twice: that keeps others off until one is gone. */
static void
partition_block_share(struct bh_occupancy *occupancy, enum bh_gpu_model model, const struct bh_share *share,
                      uint32_t slot)
{
    bool taken = occupancy->whole && !occupancy->shared;

    occupancy->shares &= ~(UINT32_C(1) << slot);
    bh_share_add(occupancy, model, share, slot);
    occupancy->shared = !taken && occupancy->units == 0;
}

void
bh_partition_block(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile_id,
                   uint32_t start)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    struct bh_share share;
    uint32_t slices;

    if (bh_share_get((bh_profile_id){ profile_id }, &share)) {
        partition_block_share(occupancy, model, &share, start);
        return;
    }
    occupancy->shared = false;
    if (!profile) {
        occupancy->whole = true;
        return;
    }
    slices = occupancy->slices + profile->compute_slices;
    if (slices > bh_model_facts(model)->compute_slices)
        slices = bh_model_facts(model)->compute_slices;
    occupancy->slices = slices;
    occupancy->units |= ((1u << profile->memory_units) - 1) << start;
    occupancy->media = occupancy->media || profile->media;
}

uint32_t
bh_partition_capacity(const struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile_id)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    struct bh_share share;

    if (profile)
        return bh_occupancy_capacity(occupancy, profile);
    if (bh_share_get((bh_profile_id){ profile_id }, &share))
        return bh_share_capacity(occupancy, model, &share);
    return bh_occupancy_is_empty(occupancy);
}

bool
bh_partition_overlaps(uint32_t profile, uint32_t start, uint32_t other, uint32_t other_start)
{
    const struct bh_profile *one = bh_profile_get((bh_profile_id){ profile });
    const struct bh_profile *two = bh_profile_get((bh_profile_id){ other });

    if (one && two)
        return start < other_start + two->memory_units && other_start < start + one->memory_units;
    return !bh_profile_is_share((bh_profile_id){ profile }) || !bh_profile_is_share((bh_profile_id){ other })
           || start == other_start;
}

void
bh_partition_name(enum bh_gpu_model model, uint32_t profile_id, char ret_name[BH_PARTITION_NAME_MAX])
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    const char *name = profile ? profile->name : "whole";
    struct bh_share share;

    if (bh_share_get((bh_profile_id){ profile_id }, &share)) {
        bh_share_format(model, &share, ret_name);
        return;
    }
    BH_ASSERT(strlen(name) < BH_PARTITION_NAME_MAX);
    memcpy(ret_name, name, strlen(name) + 1);
}
