#ifndef BH_ENGINE_PACK_PACK_AHEAD_SEARCH_TEST_H
#define BH_ENGINE_PACK_PACK_AHEAD_SEARCH_TEST_H

/* What policy bulkhead chooses, from the definition: every node, every GPU, the price of
 * each model.  Tests only. */

#include "engine/pack/pack_ahead_reference_test.h"

/* Points before the price. */
static inline int64_t
ahead_points(const struct ahead *ahead, const struct bh_pack_node *node, const struct bh_pack_shape *shape,
             uint32_t gpus, int64_t *ret_saved)
{
    struct bh_pack_node left = reference_take(node, shape, gpus);

    *ret_saved = ahead_waste(ahead, node) - ahead_waste(ahead, &left);
    return (*ret_saved - node->cpu_milli / 80) >> 9;
}

/* The same with the best GPUs. */
static inline int64_t
ahead_best(const struct ahead *ahead, const struct bh_pack_node *node, const struct bh_pack_shape *shape,
           uint32_t *ret_gpus)
{
    int64_t most = INT64_MIN, best = INT64_MIN;

    if (shape->gpus != 1) {
        *ret_gpus = reference_first_gpus(node, shape);
        return ahead_points(ahead, node, shape, *ret_gpus, &most);
    }
    for (uint32_t g = 0; g < node->gpus; g++) {
        int64_t saved, points;

        if (node->parts[g] < shape->parts)
            continue;
        points = ahead_points(ahead, node, shape, 1U << g, &saved);
        if (saved <= most)
            continue;
        most = saved;
        best = points;
        *ret_gpus = 1U << g;
    }
    return best;
}

/* Free thousandths of the models of a set. */
static inline int64_t
ahead_free(const struct world *world, uint32_t set)
{
    int64_t milli = 0;

    for (uint32_t n = 0; n < world->node_count; n++)
        for (uint32_t g = 0; g < world->nodes[n].gpus; g++)
            milli += set >> (world->nodes[n].model / 21) & 1 ? world->nodes[n].parts[g] * 5 / 21 : 0;
    return milli;
}

/* Thousandths that expected shapes ask for by the set of models that they take; in all. */
static inline int64_t
ahead_demand(const struct world *world, uint64_t known, int64_t ret_asked[8])
{
    int64_t demand = 0;

    for (uint32_t s = 0; s < world->shape_count; s++) {
        const struct bh_pack_shape *shape = &world->shapes[s];
        int64_t requests = world->weights[s] * (int64_t)(shape->gpus * shape->parts) * 5 / 21;
        uint64_t models = shape->models & known;

        demand += requests;
        if (shape->gpus && models != known)
            ret_asked[(models & 1) + (models >> 21 & 1) * 2 + (models >> 42 & 1) * 4] += requests;
    }
    return demand;
}

/* Levels of the three models from what is free now. */
static inline void
ahead_reckon(struct ahead *ahead)
{
    const struct world *world = ahead->world;
    int64_t asked[8] = { 0 }, sum[3] = { 0 }, demand;
    uint64_t known = 0;

    for (uint32_t n = 0; n < world->node_count; n++)
        known |= 1ULL << world->nodes[n].model;
    demand = ahead_demand(world, known, asked);
    for (uint32_t set = 1; set < 8; set++)
        for (uint32_t m = 0; m < 3; m++)
            if (asked[set] && set >> m & 1)
                sum[m] +=
                    (ahead_free(world, 7) * (asked[set] * 65536 / demand) / (ahead_free(world, set) + 1) * 64)
                    >> 16;
    for (uint32_t m = 0; m < 3; m++)
        ahead->level[m] = sum[m] / 8 * 8 < 256 ? sum[m] / 8 * 8 : 256;
    ahead->placed = 0;
}

/* Make tables and prices for the world, whose nodes have up to so many tenths. */
static inline void
ahead_learn(struct ahead *ahead, struct world *world, int tenths)
{
    ahead->world = world;
    for (uint32_t m = 0; m < 3; m++) {
        ahead->nodes[m] = ahead_nodes(world, m * 21, tenths);
        for (uint32_t s = 0; s < world->shape_count; s++)
            ahead_levels(world, m * 21, world->shapes[s].cpu_milli, ahead->levels[m][s]);
        ahead_levels(world, m * 21, 0, ahead->levels[m][WORLD_SHAPES]);
    }
    ahead_reckon(ahead);
}

static inline void
ahead_forget(struct ahead *ahead)
{
    for (uint32_t m = 0; m < 3; m++)
        free(ahead->nodes[m]);
}

/* The best node by exhaustive search, or NO_NODE. */
static inline int
ahead_search(const struct ahead *ahead, const struct bh_pack_shape *shape, uint32_t *ret_gpus)
{
    int64_t most = INT64_MIN;
    int best = NO_NODE;

    for (uint32_t n = 0; n < ahead->world->node_count; n++) {
        const struct bh_pack_node *node = &ahead->world->nodes[n];
        uint32_t gpus = 0;
        int64_t points;

        if (!reference_has_capacity(node, shape))
            continue;
        points = ahead_best(ahead, node, shape, &gpus)
                 - ahead->level[node->model / 21] * (int64_t)(shape->gpus * shape->parts) / BH_GPU_PARTS;
        if (points <= most)
            continue;
        most = points;
        best = (int)n;
        *ret_gpus = gpus;
    }
    return best;
}

#endif
