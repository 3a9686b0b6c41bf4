#include "engine/gpu/gpu_group.h"

#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "engine/state/slots.h"

static bool
gpu_group_matches(const struct gpu_group *group, uint32_t model, const struct bh_occupancy *occupancy)
{
    return group->model == model && group->occupancy.units == occupancy->units
           && group->occupancy.slices == occupancy->slices && group->occupancy.whole == occupancy->whole
           && group->occupancy.media == occupancy->media
           && memcmp(group->occupancy.counts, occupancy->counts, sizeof(occupancy->counts)) == 0;
}

/* Where the group is looked for first. */
static uint64_t
gpu_group_home_of(uint32_t model, const struct bh_occupancy *occupancy)
{
    uint64_t hash = 0xcbf29ce484222325ull ^ model, counts[2];
    const uint64_t flags = (uint64_t)occupancy->whole << 1 | occupancy->media;

    _Static_assert(sizeof(counts) == sizeof(occupancy->counts), "two words");
    memcpy(counts, occupancy->counts, sizeof(counts));
    hash = (hash ^ occupancy->units) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ occupancy->slices) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ flags) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ counts[0]) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ counts[1] ^ hash >> 29) * 0x9e3779b97f4a7c15ull;
    return hash >> 1 | 1; /* never 0, and room for those that follow */
}

static uint32_t
group_for(struct bh_engine *engine, uint32_t model, const struct bh_occupancy *occupancy)
{
    uint64_t id;
    uint32_t slot;
    struct gpu_group *group;

    for (id = gpu_group_home_of(model, occupancy); (slot = gpu_group_find(engine, id)) != 0; id++)
        if (gpu_group_matches(gpu_group_at(engine, slot), model, occupancy))
            return slot;
    slot = bh_slot_add(engine, TABLE_GPU_GROUP, id);
    group = gpu_group_at(engine, slot);
    group->model = model;
    /* bytes, not values: what lies between members is part of the state */
    memcpy(&group->occupancy, occupancy, sizeof(group->occupancy));
    return slot;
}

static void
gpu_group_leave(struct bh_engine *engine, uint32_t slot)
{
    struct gpu *gpu = gpu_at(engine, slot);
    struct gpu_group *group = gpu_group_at(engine, gpu->gpu_group);

    BH_ASSERT(group->gpus > 0);
    BH_ASSERT(group->id != 0 && group->model == gpu->model);
    BH_ASSERT(gpu->prev_in_group ? gpu_at(engine, gpu->prev_in_group)->next_in_group == slot
                                 : group->first == slot);
    BH_ASSERT(gpu->next_in_group == 0 || gpu_at(engine, gpu->next_in_group)->prev_in_group == slot);
    if (gpu->next_in_group)
        gpu_at(engine, gpu->next_in_group)->prev_in_group = gpu->prev_in_group;
    if (gpu->prev_in_group)
        gpu_at(engine, gpu->prev_in_group)->next_in_group = gpu->next_in_group;
    else
        group->first = gpu->next_in_group;
    group->gpus--;
    if (group->gpus == 0)
        bh_slot_remove(engine, TABLE_GPU_GROUP, gpu->gpu_group);
    gpu->gpu_group = gpu->next_in_group = gpu->prev_in_group = 0;
}

static void
gpu_group_join(struct bh_engine *engine, uint32_t slot)
{
    struct gpu *gpu = gpu_at(engine, slot);
    struct gpu_group *group;

    BH_ASSERT(gpu->id != 0 && gpu->gpu_group == 0);
    BH_ASSERT(gpu->next_in_group == 0 && gpu->prev_in_group == 0);
    gpu->gpu_group = group_for(engine, gpu->model, &gpu->occupancy);
    group = gpu_group_at(engine, gpu->gpu_group);
    gpu->next_in_group = group->first;
    if (group->first)
        gpu_at(engine, group->first)->prev_in_group = slot;
    group->first = slot;
    group->gpus++;
}

void
bh_gpu_group_update(struct bh_engine *engine, uint32_t slot, bool offered)
{
    struct gpu *gpu = gpu_at(engine, slot);

    BH_ASSERT(gpu->id != 0 && (gpu->gpu_group == 0 || gpu_group_at(engine, gpu->gpu_group)->id != 0));
    if (gpu->gpu_group && offered
        && gpu_group_matches(gpu_group_at(engine, gpu->gpu_group), gpu->model, &gpu->occupancy))
        return;
    if (gpu->gpu_group)
        gpu_group_leave(engine, slot);
    if (offered)
        gpu_group_join(engine, slot);
}

bool
bh_gpu_group_check(const struct bh_engine *engine, uint32_t *ret_gpu)
{
    uint32_t members = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU_GROUP, &slot);) {
        const struct gpu_group *group = gpu_group_at(engine, slot);
        uint32_t count = 0;

        for (*ret_gpu = group->first; *ret_gpu; *ret_gpu = gpu_at(engine, *ret_gpu)->next_in_group) {
            const struct gpu *gpu = gpu_at(engine, *ret_gpu);

            if (gpu->gpu_group != slot || ++count > group->gpus
                || !gpu_group_matches(group, gpu->model, &gpu->occupancy))
                return false;
        }
        if (count != group->gpus)
            return false;
        members += count;
    }
    for (*ret_gpu = 0; bh_slot_next(engine, TABLE_GPU, ret_gpu);)
        members -= gpu_at(engine, *ret_gpu)->gpu_group != 0;
    *ret_gpu = 0;
    return members == 0;
}
