#ifndef BH_ENGINE_PACK_PACK_REFERENCE_TEST_H
#define BH_ENGINE_PACK_PACK_REFERENCE_TEST_H

/* A cluster made at random, and what the packing index says about it worked out from the
 * definitions: every node, every GPU, every expected shape, in the artifact's own double
 * precision where the artifact's rounding is the definition.  Tests only. */

#include <math.h>
#include <stdlib.h>

#include "base/splitmix.h"
#include "base/test.h"
#include "engine/pack/pack.h"

enum { WORLD_NODES = 40, WORLD_SHAPES = 24, NO_NODE = -1 };

struct world {
    uint64_t random;
    uint32_t node_count, shape_count, others;
    struct bh_pack_node nodes[WORLD_NODES];
    struct bh_pack_shape shapes[WORLD_SHAPES];
    uint32_t weights[WORLD_SHAPES];
};

/* Up to and without `limit`. */
static inline uint32_t
world_draw(struct world *world, uint32_t limit)
{
    return (uint32_t)(bh_splitmix_next(&world->random) % limit);
}

static inline struct bh_pack_node
world_draw_node(struct world *world)
{
    static const uint32_t gpus[] = { 0, 1, 2, 4, 8, 8, 16 };
    struct bh_pack_node node = {
        .cpu_milli = world_draw(world, 33) * 4000,
        .memory_mib = world_draw(world, 9) * 32768,
        .model = world_draw(world, 3) * 21,
        .gpus = gpus[world_draw(world, 7)],
    };

    for (uint32_t g = 0; g < node.gpus; g++)
        node.parts[g] = world_draw(world, 2) ? BH_GPU_PARTS : (uint16_t)(world_draw(world, 101) * 42);
    return node;
}

static inline struct bh_pack_shape
world_draw_shape(struct world *world)
{
    static const uint32_t gpus[] = { 0, 1, 1, 1, 1, 2, 8 };
    struct bh_pack_shape shape = {
        .cpu_milli = world_draw(world, 20) * 1700,
        .memory_mib = world_draw(world, 4) * 8192,
        .gpus = gpus[world_draw(world, 7)],
        .models = world_draw(world, 3) ? UINT64_MAX : 1ULL << world_draw(world, 3) * 21,
    };

    if (shape.gpus)
        shape.parts = BH_GPU_PARTS;
    if (shape.gpus == 1 && world_draw(world, 3))
        shape.parts = (1 + world_draw(world, 99)) * 42;
    return shape;
}

/* Different shapes, some of them expected. */
static inline void
world_make(struct world *world, uint64_t seed)
{
    *world = (struct world){ .random = seed };
    world->node_count = 1 + world_draw(world, WORLD_NODES);
    world->shape_count = 2 + world_draw(world, WORLD_SHAPES - 1);
    world->others = world_draw(world, 50);
    for (uint32_t n = 0; n < world->node_count; n++)
        world->nodes[n] =
            n && world_draw(world, 2) ? world->nodes[world_draw(world, n)] : world_draw_node(world);
    for (uint32_t s = 0; s < world->shape_count; s++) {
        world->shapes[s] = world_draw_shape(world);
        world->shapes[s].memory_mib += s; /* so that no two are the same */
        world->weights[s] = world_draw(world, 2) ? 1 + world_draw(world, 400) : 0;
    }
}

static inline struct bh_pack *
world_index(const struct world *world, enum bh_pack_policy policy)
{
    struct bh_pack_caps caps = { world->node_count, world->shape_count };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, policy);

    for (uint32_t n = 0; n < world->node_count; n++)
        bh_pack_set_node(pack, n, &world->nodes[n]);
    for (uint32_t s = 0; s < world->shape_count; s++) {
        assert_int_equal(bh_pack_shape(pack, &world->shapes[s]), s);
        assert_true(bh_pack_expect(pack, s, world->weights[s]));
    }
    return pack;
}

static inline bool
reference_fits_gpus(const struct bh_pack_node *node, const struct bh_pack_shape *shape)
{
    uint32_t count = 0;

    for (uint32_t g = 0; g < node->gpus; g++)
        count += node->parts[g] >= shape->parts;
    return shape->gpus == 0 || count >= shape->gpus;
}

static inline bool
reference_has_capacity(const struct bh_pack_node *node, const struct bh_pack_shape *shape)
{
    return node->cpu_milli >= shape->cpu_milli && node->memory_mib >= shape->memory_mib
           && (shape->gpus == 0 || shape->models >> node->model & 1) && reference_fits_gpus(node, shape);
}

/* What the shape cannot use of the node's GPUs; `ret_why`: where the artifact books it. */
static inline uint32_t
reference_unusable(const struct bh_pack_node *node, const struct bh_pack_shape *shape, int *ret_why)
{
    bool cores = node->cpu_milli >= shape->cpu_milli;
    uint32_t all = 0, little = 0;

    for (uint32_t g = 0; g < node->gpus; g++) {
        all += node->parts[g];
        little += node->parts[g] < shape->parts ? node->parts[g] : 0;
    }
    if (shape->gpus == 0)
        *ret_why = cores ? 4 : 5;
    else if (!(shape->models >> node->model & 1))
        *ret_why = 6;
    else if (reference_fits_gpus(node, shape))
        *ret_why = cores ? 2 : 3;
    else
        *ret_why = cores ? 1 : 0;
    return *ret_why == 2 ? little : all;
}

/* F of one node, in parts times weight. */
static inline int64_t
reference_loss(const struct world *world, const struct bh_pack_node *node)
{
    int64_t loss = 0;
    int why;

    for (uint32_t s = 0; s < world->shape_count; s++)
        loss += (int64_t)world->weights[s] * reference_unusable(node, &world->shapes[s], &why);
    return loss;
}

static inline int
reference_order(const void *left, const void *right, void *self)
{
    const struct world *world = self;
    uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
    const struct bh_pack_shape *a = &world->shapes[l], *b = &world->shapes[r];

    if (world->weights[l] != world->weights[r])
        return world->weights[l] > world->weights[r] ? -1 : 1;
    if (a->cpu_milli != b->cpu_milli)
        return a->cpu_milli > b->cpu_milli ? -1 : 1;
    if (a->parts != b->parts)
        return a->parts > b->parts ? -1 : 1;
    if (a->gpus != b->gpus)
        return a->gpus > b->gpus ? -1 : 1;
    return l < r ? -1 : 1;
}

/* F of one node as FGD's artifact adds it up, in thousandths of a GPU. */
static inline double
reference_sum(const struct world *world, const struct bh_pack_node *node)
{
    uint32_t order[WORLD_SHAPES], weight = 0;
    double booked[7] = { 0 }, sum = 0, total, share;

    for (uint32_t s = 0; s < world->shape_count; s++) {
        order[s] = s;
        weight += world->weights[s];
    }
    total = weight + world->others;
    share = weight / total;
    qsort_r(order, world->shape_count, sizeof *order, reference_order, (void *)(uintptr_t)world);
    for (uint32_t i = 0; i < world->shape_count && world->weights[order[i]]; i++) {
        int why;
        uint32_t lost = reference_unusable(node, &world->shapes[order[i]], &why);

        booked[why == 2 ? 1 : why] += world->weights[order[i]] / total / share * (lost * 5 / 21);
    }
    for (int why = 0; why < 7; why++)
        sum += booked[why];
    return sum;
}

static inline struct bh_pack_node
reference_take(const struct bh_pack_node *node, const struct bh_pack_shape *shape, uint32_t gpus)
{
    struct bh_pack_node left = *node;

    left.cpu_milli -= shape->cpu_milli;
    left.memory_mib -= shape->memory_mib;
    for (uint32_t g = 0; g < node->gpus; g++)
        if (gpus >> g & 1)
            left.parts[g] = (uint16_t)(left.parts[g] - shape->parts);
    return left;
}

/* The first `count` GPUs with enough left. */
static inline uint32_t
reference_first_gpus(const struct bh_pack_node *node, const struct bh_pack_shape *shape)
{
    uint32_t gpus = 0, count = 0;

    for (uint32_t g = 0; g < node->gpus && count < shape->gpus; g++) {
        if (node->parts[g] < shape->parts)
            continue;
        gpus |= 1U << g;
        count++;
    }
    return gpus;
}

#endif
