#ifndef BH_ENGINE_PACK_PACK_AHEAD_REFERENCE_TEST_H
#define BH_ENGINE_PACK_PACK_AHEAD_REFERENCE_TEST_H

/* Waste as policy bulkhead sees it, worked out from the definitions in
 * docs/internals/packing.md: no kinds, no tables cut to the nodes there are, a fresh table
 * for each offer.  Tests only. */

#include "engine/pack/pack_reference_test.h"

enum { AHEAD_GPU_OFFERS = 32, AHEAD_NODE_OFFERS = 24, AHEAD_TENTHS = 161, AHEAD_CORES = 130 };

/* Tables of one model. */
struct ahead_nodes {
    int32_t waste[AHEAD_TENTHS][AHEAD_CORES];
};

/* Models are 0, 21 and 42. */
struct ahead {
    struct world *world;
    struct ahead_nodes *nodes[3];
    int64_t levels[3][WORLD_SHAPES + 1][101]; /* by whose cores there are; last: of no job */
    int64_t placed;
    int64_t level[3];
};

static inline bool
ahead_serves(const struct world *world, uint32_t s, uint32_t model, bool cores_too)
{
    const struct bh_pack_shape *shape = &world->shapes[s];

    return world->weights[s] > 0 && (shape->gpus ? shape->models >> model & 1 : cores_too);
}

/* The shape's share of those that the model serves, of 65536. */
static inline int64_t
ahead_share(const struct world *world, uint32_t s, uint32_t model, bool cores_too)
{
    int64_t sum = 0;

    if (!ahead_serves(world, s, model, cores_too))
        return 0;
    for (uint32_t i = 0; i < world->shape_count; i++)
        sum += ahead_serves(world, i, model, cores_too) ? world->weights[i] : 0;
    return world->weights[s] * 65536LL / sum;
}

static inline void
ahead_shares(const struct world *world, uint32_t model, bool cores_too, int64_t ret_share[WORLD_SHAPES])
{
    for (uint32_t s = 0; s < world->shape_count; s++)
        ret_share[s] = ahead_share(world, s, model, cores_too);
}

/* The expected use of one GPU with r hundredths left on a node with so many cores. */
static inline int64_t
ahead_use(const struct world *world, const int64_t *share, uint32_t cpu_milli, const int64_t *old, int r)
{
    int64_t sum = 0, rest = 65536;

    for (uint32_t s = 0; s < world->shape_count; s++) {
        int size = (int)(world->shapes[s].parts + 41) / 42;

        if (share[s] == 0 || world->shapes[s].cpu_milli > cpu_milli || size > r)
            continue;
        sum += share[s] * (size * 640 + old[r - size]);
        rest -= share[s];
    }
    return (sum + rest * old[r]) >> 16;
}

static inline void
ahead_levels(const struct world *world, uint32_t model, uint32_t cpu_milli, int64_t ret_waste[101])
{
    int64_t use[2][101] = { { 0 } }, share[WORLD_SHAPES];

    ahead_shares(world, model, false, share);
    for (int offer = 0; offer < AHEAD_GPU_OFFERS; offer++)
        for (int r = 0; r <= 100; r++)
            use[(offer + 1) % 2][r] = ahead_use(world, share, cpu_milli, use[offer % 2], r);
    for (int r = 0; r <= 100; r++)
        ret_waste[r] = r * 640 - use[AHEAD_GPU_OFFERS % 2][r];
}

static inline int64_t
ahead_offer(const struct world *world, const int64_t *share, const struct ahead_nodes *old, int g, int c)
{
    int64_t sum = 0, rest = 65536;

    for (uint32_t s = 0; s < world->shape_count; s++) {
        const struct bh_pack_shape *shape = &world->shapes[s];
        int tenths = (int)(shape->gpus * shape->parts + 210) / 420;
        int cores = (int)(shape->cpu_milli + 500) / 1000;

        tenths = shape->gpus && tenths == 0 ? 1 : tenths;
        if (share[s] == 0 || tenths > g || cores > c)
            continue;
        sum += share[s] * ((100 * tenths + 16 * cores) * 64 + old->waste[g - tenths][c - cores]);
        rest -= share[s];
    }
    return (sum + rest * old->waste[g][c]) >> 16;
}

/* The tables of nodes of a model, until freed by the caller; up to so many tenths. */
static inline struct ahead_nodes *
ahead_nodes(const struct world *world, uint32_t model, int tenths)
{
    struct ahead_nodes *old = calloc(1, sizeof *old), *new = calloc(1, sizeof *new);
    int64_t share[WORLD_SHAPES];

    ahead_shares(world, model, true, share);
    for (int offer = 0; offer < AHEAD_NODE_OFFERS; offer++) {
        struct ahead_nodes *swap = old;

        for (int g = 0; g <= tenths; g++)
            for (int c = 0; c < AHEAD_CORES - 1; c++)
                new->waste[g][c] = (int32_t)ahead_offer(world, share, old, g, c);
        old = new;
        new = swap;
    }
    for (int g = 0; g <= tenths; g++) {
        for (int c = 0; c < AHEAD_CORES - 1; c++)
            old->waste[g][c] = ((100 * g + 16 * c) * 64 - old->waste[g][c]) * 8 / 64;
        old->waste[g][AHEAD_CORES - 1] = old->waste[g][AHEAD_CORES - 2];
    }
    free(new);
    return old;
}

/* What shapes of several GPUs cannot use. */
static inline int64_t
ahead_several(const struct world *world, const struct bh_pack_node *node)
{
    int64_t whole = 0, broken = 0, lost = 0;

    for (uint32_t g = 0; g < node->gpus; g++) {
        whole += node->parts[g] == BH_GPU_PARTS;
        broken += node->parts[g] < BH_GPU_PARTS ? node->parts[g] : 0;
    }
    for (uint32_t s = 0; s < world->shape_count; s++) {
        const struct bh_pack_shape *shape = &world->shapes[s];

        if (shape->gpus < 2 || shape->cpu_milli > node->cpu_milli)
            continue;
        lost += ahead_share(world, s, node->model, true)
                * (broken * 5 / 21 + (shape->gpus > whole ? 1000 * whole : 0));
    }
    return lost * 4 >> 16;
}

/* The waste of the node's GPUs by level: of the expected shape with GPUs that asks for the
 * most cores of those that the node has. */
static inline const int64_t *
ahead_levels_of(const struct ahead *ahead, const struct bh_pack_node *node)
{
    const struct world *world = ahead->world;
    uint32_t best = WORLD_SHAPES, most = 0;

    for (uint32_t s = 0; s < world->shape_count; s++) {
        uint32_t cpu_milli = world->shapes[s].cpu_milli;

        if (!world->weights[s] || !world->shapes[s].gpus || cpu_milli > node->cpu_milli || cpu_milli < most)
            continue;
        most = cpu_milli;
        best = s;
    }
    return ahead->levels[node->model / 21][best];
}

static inline int64_t
ahead_waste(const struct ahead *ahead, const struct bh_pack_node *node)
{
    const struct ahead_nodes *nodes = ahead->nodes[node->model / 21];
    const int64_t *level = ahead_levels_of(ahead, node);
    int64_t waste = 0, parts = 0;
    const int32_t *row;

    for (uint32_t g = 0; g < node->gpus; g++) {
        waste += level[node->parts[g] / 42];
        parts += node->parts[g];
    }
    row = &nodes->waste[(parts + 210) / 420][node->cpu_milli / 1000];
    waste += row[0] + (int64_t)(row[1] - row[0]) * (node->cpu_milli % 1000) / 1000;
    return waste + ahead_several(ahead->world, node);
}

#endif
