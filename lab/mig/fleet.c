#include "lab/mig/fleet.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/attr.h"
#include "engine/state/mig.h"

const char *const bh_mig_policy_names[BH_MIG_POLICIES] = {
    "rr", "worst-fit", "first-fit", "best-fit", "best-index", "mcc", "frag", "slice-fit", "bulkhead",
};

/* What placing a kind of job on a GPU costs, remembered until the GPU changes. */
struct fleet_offer {
    bool known;
    uint32_t starts; /* bit s: the best starts; 0: no room */
    int64_t cost;
};

struct fleet_gpu {
    struct bh_occupancy occupancy;
    struct fleet_offer offers[BH_MIG_FLEET_PROFILES];
};

struct bh_mig_fleet {
    const struct bh_model_facts *facts;
    const struct bh_profile *profiles[BH_MIG_FLEET_PROFILES];
    const struct bh_mig_mix *mix;
    enum bh_mig_policy policy;
    uint32_t gpu_count, next; /* next: where round robin continues */
    struct bh_mig *mig;       /* Bulkhead's index, or NULL */
    struct bh_mig_pool pool;
    struct bh_mig_demand demand;
    struct fleet_gpu gpus[];
};

/* ---- costs of a placement, from what stands before and after; less is better ---- */

static int64_t
fleet_free_units(const struct bh_mig_fleet *fleet, const struct bh_occupancy *occupancy)
{
    return (int64_t)fleet->facts->memory_units - __builtin_popcount(occupancy->units);
}

static int64_t
fleet_free_slices(const struct bh_mig_fleet *fleet, const struct bh_occupancy *occupancy)
{
    return (int64_t)fleet->facts->compute_slices - occupancy->slices;
}

/* Ways to place one more job. */
static int64_t
fleet_placements(const struct bh_mig_fleet *fleet, const struct bh_occupancy *occupancy)
{
    int64_t count = 0;

    for (uint32_t kind = 0; kind < BH_MIG_FLEET_PROFILES; kind++)
        for (uint32_t starts = fleet->profiles[kind]->starts; starts; starts &= starts - 1)
            count += bh_occupancy_fits(occupancy, fleet->profiles[kind], (uint32_t)__builtin_ctz(starts));
    return count;
}

/* Free slices that each kind cannot use, by how often it is asked for. */
static int64_t
fleet_fragmentation(const struct bh_mig_fleet *fleet, const struct bh_occupancy *occupancy)
{
    int64_t lost = 0;

    for (uint32_t kind = 0; kind < BH_MIG_FLEET_PROFILES; kind++) {
        const struct bh_profile *profile = fleet->profiles[kind];
        int64_t usable = (int64_t)bh_occupancy_capacity(occupancy, profile) * profile->compute_slices;

        lost += fleet->mix->weights[kind] * (fleet_free_slices(fleet, occupancy) - usable);
    }
    return lost;
}

static int64_t
fleet_first_fit(const struct bh_mig_fleet *fleet, const struct bh_occupancy *before,
                const struct bh_occupancy *after)
{
    return 0;
}

static int64_t
fleet_worst_fit(const struct bh_mig_fleet *fleet, const struct bh_occupancy *before,
                const struct bh_occupancy *after)
{
    return -fleet_free_slices(fleet, before);
}

static int64_t
fleet_best_fit(const struct bh_mig_fleet *fleet, const struct bh_occupancy *before,
               const struct bh_occupancy *after)
{
    return fleet_free_units(fleet, before);
}

static int64_t
fleet_best_index(const struct bh_mig_fleet *fleet, const struct bh_occupancy *before,
                 const struct bh_occupancy *after)
{
    return fleet_free_units(fleet, before) * 256 - fleet_placements(fleet, after);
}

static int64_t
fleet_slice_fit(const struct bh_mig_fleet *fleet, const struct bh_occupancy *before,
                const struct bh_occupancy *after)
{
    return fleet_free_slices(fleet, before) * 256 - fleet_placements(fleet, after);
}

static int64_t
fleet_mcc(const struct bh_mig_fleet *fleet, const struct bh_occupancy *before,
          const struct bh_occupancy *after)
{
    return fleet_placements(fleet, before) - fleet_placements(fleet, after);
}

static int64_t
fleet_frag(const struct bh_mig_fleet *fleet, const struct bh_occupancy *before,
           const struct bh_occupancy *after)
{
    int64_t growth = fleet_fragmentation(fleet, after) - fleet_fragmentation(fleet, before);

    return growth * 16 + fleet_free_units(fleet, after);
}

static int64_t (*const costs[BH_MIG_POLICIES])(const struct bh_mig_fleet *fleet,
                                               const struct bh_occupancy *before,
                                               const struct bh_occupancy *after) = {
    [BH_MIG_ROUND_ROBIN] = fleet_first_fit,
    [BH_MIG_WORST_FIT] = fleet_worst_fit,
    [BH_MIG_FIRST_FIT] = fleet_first_fit,
    [BH_MIG_BEST_FIT] = fleet_best_fit,
    [BH_MIG_BEST_INDEX] = fleet_best_index,
    [BH_MIG_MCC] = fleet_mcc,
    [BH_MIG_FRAG] = fleet_frag,
    [BH_MIG_SLICE_FIT] = fleet_slice_fit,
};

/* ---- the fleet ---- */

static bool
fleet_smaller(const struct bh_profile *a, const struct bh_profile *b)
{
    if (a->memory_units != b->memory_units)
        return a->memory_units < b->memory_units;
    return a->compute_slices < b->compute_slices;
}

static void
fleet_find_profiles(struct bh_mig_fleet *fleet, enum bh_gpu_model model)
{
    uint32_t rows, count = 0;
    const struct bh_profile *profile = bh_profile_first(model, &rows);

    for (; rows > 0; rows--, profile++) {
        uint32_t at = count;

        if (!profile->plain)
            continue;
        BH_ASSERT(count < BH_MIG_FLEET_PROFILES);
        for (; at > 0 && fleet_smaller(profile, fleet->profiles[at - 1]); at--)
            fleet->profiles[at] = fleet->profiles[at - 1];
        fleet->profiles[at] = profile;
        count++;
    }
    BH_ASSERT(count == BH_MIG_FLEET_PROFILES);
}

struct bh_mig_fleet *
bh_mig_fleet_new(enum bh_gpu_model model, uint32_t gpus, enum bh_mig_policy policy,
                 const struct bh_mig_mix *mix)
{
    struct bh_mig_fleet *fleet = calloc(1, sizeof(*fleet) + gpus * sizeof(struct fleet_gpu));

    BH_ASSERT(fleet && gpus > 0 && gpus <= BH_MIG_FLEET_GPUS_MAX);
    fleet->facts = bh_model_facts(model);
    fleet->mix = mix;
    fleet->policy = policy;
    fleet->gpu_count = gpus;
    fleet_find_profiles(fleet, model);
    if (policy != BH_MIG_BULKHEAD)
        return fleet;
    fleet->mig = malloc(bh_mig_size());
    BH_ASSERT(fleet->mig);
    bh_mig_init(fleet->mig, model);
    for (uint32_t shape = 0; shape < bh_mig_shapes(fleet->mig); shape++)
        fleet->demand.weights[shape] = 1; /* nothing is known to be never asked for */
    for (uint32_t gpu = 0; gpu < gpus; gpu++)
        bh_mig_pool_add(fleet->mig, &fleet->pool, &fleet->gpus[gpu].occupancy);
    return fleet;
}

void
bh_mig_fleet_free(struct bh_mig_fleet *fleet)
{
    if (fleet)
        free(fleet->mig);
    free(fleet);
}

const struct bh_profile *
bh_mig_fleet_profile(const struct bh_mig_fleet *fleet, uint32_t kind)
{
    BH_ASSERT(kind < BH_MIG_FLEET_PROFILES);
    return fleet->profiles[kind];
}

const struct bh_occupancy *
bh_mig_fleet_gpu(const struct bh_mig_fleet *fleet, uint32_t gpu)
{
    BH_ASSERT(gpu < fleet->gpu_count);
    return &fleet->gpus[gpu].occupancy;
}

/* ---- placing ---- */

static void
fleet_weigh(const struct bh_mig_fleet *fleet, uint32_t kind, struct fleet_gpu *gpu)
{
    const struct bh_profile *profile = fleet->profiles[kind];
    struct fleet_offer offer = { .known = true };

    for (uint32_t starts = profile->starts; starts; starts &= starts - 1) {
        uint32_t start = (uint32_t)__builtin_ctz(starts);
        struct bh_occupancy after = gpu->occupancy;
        int64_t cost;

        if (!bh_occupancy_fits(&gpu->occupancy, profile, start))
            continue;
        bh_occupancy_add(&after, profile, start);
        cost = costs[fleet->policy](fleet, &gpu->occupancy, &after);
        if (offer.starts && cost >= offer.cost)
            continue;
        offer.starts = 1u << start;
        offer.cost = cost;
    }
    gpu->offers[kind] = offer;
}

static struct fleet_offer
fleet_offer_of(struct bh_mig_fleet *fleet, const struct bh_mig_prices *prices, uint32_t kind,
               struct fleet_gpu *gpu)
{
    if (fleet->mig) {
        struct bh_mig_choice choice =
            bh_mig_choose(fleet->mig, prices, &gpu->occupancy, fleet->profiles[kind]);

        return (struct fleet_offer){ true, choice.starts, choice.cost };
    }
    if (!gpu->offers[kind].known)
        fleet_weigh(fleet, kind, gpu);
    return gpu->offers[kind];
}

static void
fleet_change(struct bh_mig_fleet *fleet, uint32_t kind, const struct bh_mig_placement *placement, bool adds)
{
    struct fleet_gpu *gpu = &fleet->gpus[placement->gpu];

    if (fleet->mig)
        bh_mig_pool_remove(fleet->mig, &fleet->pool, &gpu->occupancy);
    if (adds)
        bh_occupancy_add(&gpu->occupancy, fleet->profiles[kind], placement->start);
    else
        bh_occupancy_remove(&gpu->occupancy, fleet->profiles[kind], placement->start);
    if (fleet->mig)
        bh_mig_pool_add(fleet->mig, &fleet->pool, &gpu->occupancy);
    for (uint32_t i = 0; i < BH_MIG_FLEET_PROFILES; i++)
        gpu->offers[i].known = false;
}

bool
bh_mig_fleet_place(struct bh_mig_fleet *fleet, uint32_t kind, struct bh_mig_placement *ret_placement)
{
    struct bh_mig_prices prices = { { 0 } };
    struct fleet_offer best = { 0 };
    struct bh_mig_placement placement = { 0 };

    if (fleet->mig) {
        fleet->demand.weights[bh_mig_shape(fleet->mig, fleet->profiles[kind])]++;
        bh_mig_price(fleet->mig, &fleet->demand, &fleet->pool, &prices);
    }
    for (uint32_t i = 0; i < fleet->gpu_count; i++) {
        uint32_t at = (fleet->next + i) % fleet->gpu_count;
        struct fleet_offer offer = fleet_offer_of(fleet, &prices, kind, &fleet->gpus[at]);

        if (offer.starts == 0 || (best.starts && offer.cost >= best.cost))
            continue;
        best = offer;
        placement = (struct bh_mig_placement){ at, (uint32_t)__builtin_ctz(offer.starts) };
    }
    if (best.starts == 0)
        return false;
    fleet_change(fleet, kind, &placement, true);
    if (fleet->policy == BH_MIG_ROUND_ROBIN)
        fleet->next = (placement.gpu + 1) % fleet->gpu_count;
    *ret_placement = placement;
    return true;
}

void
bh_mig_fleet_end(struct bh_mig_fleet *fleet, uint32_t kind, const struct bh_mig_placement *placement)
{
    BH_ASSERT(placement->gpu < fleet->gpu_count);
    fleet_change(fleet, kind, placement, false);
}
