#include "engine/pack/pack_kind.h"

#include <string.h>

#include "base/assert.h"

/* A stand's rows are each filled up to whole matches, which one tree's rows are too: for
 * each further stand at most one match more in each row. */
uint32_t
bh_pack_kind_stride(uint32_t nodes, uint32_t kinds)
{
    struct bh_pack_tree_plan plan = bh_pack_tree_plan(nodes);

    return plan.scores + (kinds - 1) * plan.rows * BH_PACK_TREE_FAN;
}

/* Does every expected shape that takes one of the models take the other? */
static bool
are_alike(const struct bh_pack *pack, uint32_t a, uint32_t b)
{
    for (uint32_t s = 0; s < pack->shapes; s++) {
        const struct bh_pack_request *ask = bh_pack_request(pack, s);

        if (ask->weight > 0 && ask->want.gpus > 0 && ((ask->want.models >> a ^ ask->want.models >> b) & 1))
            return false;
    }
    return true;
}

static uint32_t
pack_kind_of(struct bh_pack *pack, uint32_t model)
{
    struct bh_pack_kinds *kinds = &pack->kinds;

    for (uint32_t k = 0; k < kinds->count; k++)
        if (are_alike(pack, model, kinds->model[k]))
            return k;
    if (kinds->count == pack->caps.kinds)
        return pack->caps.kinds - 1;
    kinds->model[kinds->count] = (uint8_t)model;
    return kinds->count++;
}

void
bh_pack_kind_sort(struct bh_pack *pack)
{
    struct bh_pack_kinds *kinds = &pack->kinds;

    memset(kinds->of, 0, sizeof kinds->of);
    kinds->count = 0;
    for (uint32_t model = 0; model < BH_PACK_MODELS_MAX; model++)
        if (pack->models >> model & 1)
            kinds->of[model] = (uint8_t)pack_kind_of(pack, model);
    kinds->count = kinds->count ? kinds->count : 1;
}

static void
set_up_stands(struct bh_pack *pack)
{
    struct bh_pack_kinds *kinds = &pack->kinds;
    uint32_t nodes[BH_PACK_KINDS_MAX] = { 0 }, end = 0;

    for (uint32_t n = 0; n < pack->caps.nodes; n++)
        nodes[bh_pack_kind(pack, &bh_pack_host(pack, n)->left)]++;
    for (uint32_t k = 0; k < kinds->count; k++) {
        kinds->stand[k].plan = bh_pack_tree_plan(nodes[k] ? nodes[k] : 1);
        kinds->stand[k].first = end;
        end += kinds->stand[k].plan.scores;
    }
    BH_ASSERT(end <= pack->stride);
}

void
bh_pack_kind_position(struct bh_pack *pack)
{
    uint32_t *positions = bh_pack_at(pack, pack->positions), *occupants;
    uint32_t next[BH_PACK_KINDS_MAX];

    occupants = bh_pack_at(pack, pack->occupants);
    set_up_stands(pack);
    for (uint32_t k = 0; k < pack->kinds.count; k++)
        next[k] = pack->kinds.stand[k].first;
    for (uint32_t n = 0; n < pack->caps.nodes; n++) {
        positions[n] = next[bh_pack_kind(pack, &bh_pack_host(pack, n)->left)]++;
        occupants[positions[n]] = n;
    }
}

/* The best node of one kind. */
static uint32_t
winner(const struct bh_pack *pack, const int32_t *tree, const struct bh_pack_subtree *stand)
{
    const uint32_t *occupants = bh_pack_at(pack, pack->occupants);

    return occupants[stand->first + bh_pack_tree_best(&stand->plan, tree + stand->first)];
}

static uint32_t
best_after_prices(const struct bh_pack *pack, const int32_t *tree, const struct bh_pack_shape *want)
{
    uint32_t best = BH_PACK_NOWHERE;
    int64_t most = INT64_MIN;

    for (uint32_t k = 0; k < pack->kinds.count; k++) {
        const struct bh_pack_subtree *stand = &pack->kinds.stand[k];
        int32_t top = bh_pack_tree_top(&stand->plan, tree + stand->first);
        int64_t offer = (int64_t)top - bh_pack_price(pack, k, want);
        uint32_t node;

        if (top == BH_PACK_NO_CAPACITY || offer < most)
            continue;
        node = winner(pack, tree, stand);
        best = offer > most || node < best ? node : best;
        most = offer;
    }
    return best;
}

uint32_t
bh_pack_kind_best(const struct bh_pack *pack, const int32_t *tree, const struct bh_pack_shape *want)
{
    uint32_t best;

    if (pack->kinds.count > 1)
        return best_after_prices(pack, tree, want);
    best = bh_pack_tree_best(&pack->kinds.stand[0].plan, tree);
    return tree[best] == BH_PACK_NO_CAPACITY ? BH_PACK_NOWHERE : best;
}
