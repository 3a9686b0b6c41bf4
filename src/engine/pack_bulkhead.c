#include "engine/pack_bulkhead.h"

#include "engine/pack_loss.h"

/* For now FGD's gain itself, in parts, without the rounding to a hundred points. */
int32_t
bh_pack_bulkhead_pick(const struct bh_pack *pack, const struct bh_pack_host *host,
                      const struct bh_pack_shape *want, uint32_t *ret_gpus)
{
    struct bh_pack_choice choices[BH_PACK_GPUS_MAX], *best = choices;
    uint32_t count = bh_pack_loss_choices(pack, host, want, choices);

    for (uint32_t i = 1; i < count; i++)
        if (choices[i].gain > best->gain)
            best = &choices[i];
    *ret_gpus = best->gpus;
    return (int32_t)(best->gain / (pack->loss.weight ? pack->loss.weight : 1));
}

int32_t
bh_pack_bulkhead_score(const struct bh_pack *pack, const struct bh_pack_host *host,
                       const struct bh_pack_shape *want)
{
    uint32_t gpus;

    return bh_pack_bulkhead_pick(pack, host, want, &gpus);
}
