#include "engine/pack/pack_bulkhead.h"
#include "engine/pack/pack_internal.h"
#include "engine/pack/pack_loss.h"

const char *const bh_pack_policy_names[BH_PACK_POLICIES] = {
    [BH_PACK_BESTFIT] = "bestfit",
    [BH_PACK_FGD] = "fgd",
    [BH_PACK_BULKHEAD] = "bulkhead",
};

/* Of a part: the GPU with the least left that has it, the lowest of equal ones. */
static uint32_t
tightest_gpu(const struct bh_pack_host *host, uint32_t parts)
{
    uint32_t least = BH_GPU_PARTS, chosen = host->whole & -(uint32_t)host->whole;

    for (uint32_t broken = host->broken; broken; broken &= broken - 1) {
        uint32_t left = host->left.parts[__builtin_ctz(broken)];

        if (left < parts || left >= least)
            continue;
        least = left;
        chosen = broken & -broken;
    }
    return chosen;
}

/* Best fit: floor(100 * (1 - (cores left / 128 + GPUs left / 8) / 2)), after placing.
 *
 * The artifact then scales the scores of all nodes with room to 0 .. 100, rounding down.
 * The best stays alone at 100, since anything less comes out below, so the choice is the
 * same without.  In units of 1/53760 the sum is 21 a milli-core and 80 a part. */
enum { FIT_POINT = 53760, FIT_CORES = 21, FIT_PARTS = 80 };

static int32_t
fit_score(const struct bh_pack *pack, const struct bh_pack_host *host, const struct bh_pack_shape *want)
{
    uint64_t cores = host->left.cpu_milli - want->cpu_milli;
    uint64_t parts = host->parts - want->gpus * want->parts;
    uint64_t points = (cores * FIT_CORES + parts * FIT_PARTS + FIT_POINT - 1) / FIT_POINT;

    return 100 - (int32_t)points;
}

static int32_t
fit_pick(const struct bh_pack *pack, const struct bh_pack_host *host, const struct bh_pack_shape *want,
         const struct bh_pack_rounding *rounding, uint32_t *ret_gpus)
{
    *ret_gpus = want->gpus == 1 && want->parts < BH_GPU_PARTS ? tightest_gpu(host, want->parts)
                                                              : bh_pack_first_gpus(host->whole, want->gpus);
    return fit_score(pack, host, want);
}

static int32_t
fgd_points(const struct bh_pack *pack, const struct bh_pack_host *host, const struct bh_pack_shape *want,
           const struct bh_pack_rounding *rounding, const struct bh_pack_choice *choice)
{
    int32_t points = (int32_t)bh_pack_loss_points(pack, choice->gain);

    if (rounding && choice->gain == 0
        && rounding->seems_loss(rounding->self, &host->left, want, choice->gpus))
        return points - 1;
    return points;
}

/* FGD takes the GPU with the most points too, not with the greatest gain, and so the first
 * of those whose gains round to the same. */
static int32_t
fgd_pick(const struct bh_pack *pack, const struct bh_pack_host *host, const struct bh_pack_shape *want,
         const struct bh_pack_rounding *rounding, uint32_t *ret_gpus)
{
    struct bh_pack_choice choices[BH_PACK_GPUS_MAX];
    uint32_t count = bh_pack_loss_choices(pack, host, want, choices);
    int32_t best = -1;

    for (uint32_t i = 0; i < count; i++) {
        int32_t points = fgd_points(pack, host, want, rounding, &choices[i]);

        if (points <= best)
            continue;
        best = points;
        *ret_gpus = choices[i].gpus;
    }
    return best;
}

/* Without rounding, which takes long to make and seldom matters. */
static int32_t
fgd_score(const struct bh_pack *pack, const struct bh_pack_host *host, const struct bh_pack_shape *want)
{
    struct bh_pack_choice choices[BH_PACK_GPUS_MAX];
    uint32_t count = bh_pack_loss_choices(pack, host, want, choices);
    int64_t gain = choices[0].gain;

    for (uint32_t i = 1; i < count; i++)
        gain = choices[i].gain > gain ? choices[i].gain : gain;
    return (int32_t)bh_pack_loss_points(pack, gain);
}

const struct bh_pack_rule bh_pack_rules[BH_PACK_POLICIES] = {
    [BH_PACK_BESTFIT] = { fit_score, fit_pick, false },
    [BH_PACK_FGD] = { fgd_score, fgd_pick, false },
    [BH_PACK_BULKHEAD] = { bh_pack_bulkhead_score, bh_pack_bulkhead_pick, true },
};
