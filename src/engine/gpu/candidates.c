#include "engine/gpu/candidates.h"

#include <string.h>

#include "base/assert.h"
#include "engine/gpu/pool.h"

void
bh_candidates_init(struct bh_candidates *starts, uint32_t model, uint32_t profile)
{
    starts->model = (enum bh_gpu_model)model;
    starts->profile = profile;
    starts->figures = NULL;
    for (uint32_t i = 0; i < BH_CANDIDATES_CACHE; i++)
        starts->memos[i].occupancy.units = UINT32_MAX;
}

void
bh_candidates_price(struct bh_candidates *starts, const struct bh_engine *engine, uint32_t model)
{
    if (starts->profile != BH_PROFILE_WHOLE.v)
        starts->figures = bh_pool_prices(engine, model, &starts->prices);
}

static bool
is_same_occupancy(const struct bh_occupancy *a, const struct bh_occupancy *b)
{
    return a->units == b->units && a->slices == b->slices && a->whole == b->whole && a->media == b->media
           && a->shared == b->shared && a->shares == b->shares && a->share_compute == b->share_compute
           && a->share_memory == b->share_memory && a->share_limit == b->share_limit
           && memcmp(a->counts, b->counts, sizeof(a->counts)) == 0;
}

/* Where the model has no prices: the starts where fragmentation grows least. */
static void
weigh_starts(const struct bh_profile *profile, const struct bh_occupancy *occupancy,
             struct bh_candidate_starts *ret_choice)
{
    uint64_t before;

    ret_choice->starts = 0;
    ret_choice->growth = 0;
    if (bh_occupancy_capacity(occupancy, profile) == 0)
        return;
    before = bh_occupancy_fragmentation(occupancy, profile->model);
    for (uint32_t starts = profile->starts; starts; starts &= starts - 1) {
        uint32_t start = (uint32_t)__builtin_ctz(starts);
        struct bh_occupancy after = *occupancy;
        int64_t growth;

        if (!bh_occupancy_fits(occupancy, profile, start))
            continue;
        bh_occupancy_add(&after, profile, start);
        growth = (int64_t)bh_occupancy_fragmentation(&after, profile->model) - (int64_t)before;
        if (ret_choice->starts && growth > ret_choice->growth)
            continue;
        if (ret_choice->starts == 0 || growth < ret_choice->growth)
            ret_choice->starts = 0;
        ret_choice->starts |= 1u << start;
        ret_choice->growth = growth;
    }
}

/* Shares go where least is left: GPUs that are shared fill up, and others stay whole. */
static void
weigh_share(const struct bh_candidates *starts, const struct bh_share *share,
            const struct bh_occupancy *occupancy, struct bh_candidate_starts *ret_choice)
{
    uint32_t free_slots = ~occupancy->shares;
    struct bh_occupancy after = *occupancy;

    ret_choice->starts = 0;
    ret_choice->growth = 0;
    if (bh_share_capacity(occupancy, starts->model, share) == 0)
        return;
    bh_share_add(&after, starts->model, share, (uint32_t)__builtin_ctz(free_slots));
    ret_choice->starts = free_slots;
    ret_choice->growth = 2 * BH_GPU_PARTS + (int64_t)(occupancy->share_limit - after.share_compute)
                         - (int64_t)after.share_memory;
}

static void
candidates_weigh(const struct bh_candidates *starts, const struct bh_occupancy *occupancy,
                 struct bh_candidate_starts *ret_choice)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ starts->profile });

    struct bh_share share;

    ret_choice->occupancy = *occupancy;
    if (bh_share_get((bh_profile_id){ starts->profile }, &share)) {
        weigh_share(starts, &share, occupancy, ret_choice);
        return;
    }
    if (profile && starts->figures) {
        struct bh_mig_choice choice = bh_mig_choose(starts->figures, &starts->prices, occupancy, profile);

        ret_choice->starts = choice.starts;
        ret_choice->growth = choice.cost;
        return;
    }
    if (profile) {
        weigh_starts(profile, occupancy, ret_choice);
        return;
    }
    ret_choice->starts = occupancy->units == 0 && !occupancy->whole;
    ret_choice->growth = 0;
}

const struct bh_candidate_starts *
bh_candidates_find(struct bh_candidates *starts, const struct bh_occupancy *occupancy)
{
    uint32_t at = (occupancy->units * 2654435761u >> 8) % BH_CANDIDATES_CACHE;

    if (!is_same_occupancy(&starts->memos[at].occupancy, occupancy))
        candidates_weigh(starts, occupancy, &starts->memos[at]);
    return &starts->memos[at];
}
