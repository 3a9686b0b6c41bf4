#include "engine/pack/pack_bulkhead.h"

#include "engine/pack/pack_waste.h"

enum {
    /* Units of waste that are one point: 8 thousandths of a GPU.  What is saved is rounded
     * down to points, and equal nodes go by number. */
    POINT_BITS = 9,
    /* Best fit, among nodes that save alike: a core left is worth 12.5 units. */
    FIT_CORES_MILLI = 80,
};

static int32_t
points_of(const struct bh_pack_host *host, int64_t saved)
{
    return (int32_t)((saved - host->left.cpu_milli / FIT_CORES_MILLI) >> POINT_BITS);
}

/* Where nothing is expected nothing is known to be wasted. */
static bool
is_blind(const struct bh_pack *pack)
{
    return pack->loss.weight == 0;
}

int32_t
bh_pack_bulkhead_pick(const struct bh_pack *pack, const struct bh_pack_host *host,
                      const struct bh_pack_shape *want, const struct bh_pack_rounding *rounding,
                      uint32_t *ret_gpus)
{
    struct bh_pack_choice choices[BH_PACK_GPUS_MAX], *best = choices;
    uint32_t count;

    if (is_blind(pack))
        return bh_pack_rules[BH_PACK_BESTFIT].pick(pack, host, want, rounding, ret_gpus);
    count = bh_pack_waste_choices(pack, host, want, choices);
    for (uint32_t i = 1; i < count; i++)
        if (choices[i].gain > best->gain)
            best = &choices[i];
    *ret_gpus = best->gpus;
    return points_of(host, best->gain);
}

int32_t
bh_pack_bulkhead_score(const struct bh_pack *pack, const struct bh_pack_host *host,
                       const struct bh_pack_shape *want)
{
    uint32_t gpus;

    return bh_pack_bulkhead_pick(pack, host, want, NULL, &gpus);
}
