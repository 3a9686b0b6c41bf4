#include "engine/pack/pack_price.h"

#include "base/assert.h"

enum { SHARE_BITS = 16 };

/* Amounts are thousandths of a GPU, in which the policy was tuned. */
static int64_t
milli_of(int64_t parts)
{
    return parts * 5 / 21;
}

/* What no node could ever give is no demand. */
static int64_t
demand_of(const struct bh_pack_request *ask)
{
    if (ask->want.gpus > BH_PACK_GPUS_MAX)
        return 0;
    return (int64_t)ask->weight * milli_of((int64_t)ask->want.gpus * ask->want.parts);
}

/* Book demand for a set of models. */
static void
book(struct bh_pack_supply *market, uint64_t models, int64_t demand)
{
    uint32_t k = 0;

    while (k < market->sets && market->models[k] != models)
        k++;
    if (k == BH_PACK_SETS_MAX)
        return;
    if (k == market->sets) {
        market->models[k] = models;
        market->share[k] = 0;
        market->sets++;
    }
    market->share[k] += demand;
}

static int64_t
free_milli(const struct bh_pack *pack, uint64_t models)
{
    int64_t parts = 0;

    for (models &= pack->models; models; models &= models - 1)
        parts += pack->market.free_parts[__builtin_ctzll(models)];
    return milli_of(parts);
}

void
bh_pack_price_reckon(struct bh_pack *pack)
{
    struct bh_pack_supply *market = &pack->market;
    int64_t scarcity[BH_PACK_KINDS_MAX] = { 0 }, all = free_milli(pack, UINT64_MAX);

    for (uint32_t s = 0; s < market->sets; s++) {
        int64_t left = 1 + free_milli(pack, market->models[s]);
        int64_t more = (all * market->share[s] / left * BH_PACK_LEVEL_ONE) >> SHARE_BITS;

        for (uint32_t k = 0; k < pack->kinds.count; k++)
            scarcity[k] += market->models[s] >> pack->kinds.model[k] & 1 ? more : 0;
    }
    for (uint32_t k = 0; k < pack->kinds.count; k++) {
        int64_t level = scarcity[k] / BH_PACK_LEVEL_STEP * BH_PACK_LEVEL_STEP;

        market->level[k] = (uint16_t)(level < BH_PACK_LEVEL_MAX ? level : BH_PACK_LEVEL_MAX);
    }
    market->placed = 0;
}

void
bh_pack_price_build(struct bh_pack *pack)
{
    struct bh_pack_supply *market = &pack->market;
    int64_t demand = 0;

    market->sets = 0;
    for (uint32_t s = 0; s < pack->shapes; s++) {
        const struct bh_pack_request *ask = bh_pack_request(pack, s);
        uint64_t models = ask->want.models & pack->models;

        demand += demand_of(ask);
        if (ask->weight > 0 && ask->want.gpus > 0 && models != pack->models)
            book(market, models, demand_of(ask));
    }
    for (uint32_t k = 0; k < market->sets; k++)
        market->share[k] = (market->share[k] << SHARE_BITS) / (demand ? demand : 1);
    bh_pack_price_reckon(pack);
}

void
bh_pack_price_count(struct bh_pack *pack)
{
    if (++pack->market.placed >= BH_PACK_PRICE_PLACEMENTS)
        bh_pack_price_reckon(pack);
}
