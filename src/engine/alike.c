#include "engine/alike.h"

#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "engine/slots.h"

static bool
is_of(const struct alike *group, uint32_t model, const struct bh_occupancy *occupancy)
{
    return group->model == model && group->occupancy.units == occupancy->units
           && group->occupancy.slices == occupancy->slices
           && group->occupancy.whole == occupancy->whole
           && group->occupancy.media == occupancy->media
           && memcmp(group->occupancy.counts, occupancy->counts, sizeof(occupancy->counts)) == 0;
}

/* Where the group is looked for first. */
static uint64_t
home_of(uint32_t model, const struct bh_occupancy *occupancy)
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
    struct alike *group;

    for (id = home_of(model, occupancy); (slot = alike_find(engine, id)) != 0; id++)
        if (is_of(alike_at(engine, slot), model, occupancy))
            return slot;
    slot = bh_slot_add(engine, TABLE_ALIKE, id);
    group = alike_at(engine, slot);
    group->model = model;
    /* bytes, not values: what lies between members is part of the state */
    memcpy(&group->occupancy, occupancy, sizeof(group->occupancy));
    return slot;
}

static void
leave(struct bh_engine *engine, uint32_t slot)
{
    struct gpu *gpu = gpu_at(engine, slot);
    struct alike *group = alike_at(engine, gpu->alike);

    BH_ASSERT(group->gpus > 0);
    if (gpu->next_alike)
        gpu_at(engine, gpu->next_alike)->prev_alike = gpu->prev_alike;
    if (gpu->prev_alike)
        gpu_at(engine, gpu->prev_alike)->next_alike = gpu->next_alike;
    else
        group->first = gpu->next_alike;
    group->gpus--;
    if (group->gpus == 0)
        bh_slot_remove(engine, TABLE_ALIKE, gpu->alike);
    gpu->alike = gpu->next_alike = gpu->prev_alike = 0;
}

static void
join(struct bh_engine *engine, uint32_t slot)
{
    struct gpu *gpu = gpu_at(engine, slot);
    struct alike *group;

    gpu->alike = group_for(engine, gpu->model, &gpu->occupancy);
    group = alike_at(engine, gpu->alike);
    gpu->next_alike = group->first;
    if (group->first)
        gpu_at(engine, group->first)->prev_alike = slot;
    group->first = slot;
    group->gpus++;
}

void
bh_alike_follow(struct bh_engine *engine, uint32_t slot, bool offered)
{
    struct gpu *gpu = gpu_at(engine, slot);

    if (gpu->alike && offered
        && is_of(alike_at(engine, gpu->alike), gpu->model, &gpu->occupancy))
        return;
    if (gpu->alike)
        leave(engine, slot);
    if (offered)
        join(engine, slot);
}

bool
bh_alike_check(const struct bh_engine *engine, uint32_t *ret_gpu)
{
    uint32_t members = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_ALIKE, &slot);) {
        const struct alike *group = alike_at(engine, slot);
        uint32_t count = 0;

        for (*ret_gpu = group->first; *ret_gpu; *ret_gpu = gpu_at(engine, *ret_gpu)->next_alike) {
            const struct gpu *gpu = gpu_at(engine, *ret_gpu);

            if (gpu->alike != slot || ++count > group->gpus
                || !is_of(group, gpu->model, &gpu->occupancy))
                return false;
        }
        if (count != group->gpus)
            return false;
        members += count;
    }
    for (*ret_gpu = 0; bh_slot_next(engine, TABLE_GPU, ret_gpu);)
        members -= gpu_at(engine, *ret_gpu)->alike != 0;
    *ret_gpu = 0;
    return members == 0;
}
