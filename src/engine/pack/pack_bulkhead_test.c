/* Our own policy against an exhaustive search by its definition. */
#include "engine/pack/pack_bulkhead.h"

#include "engine/pack/pack_ahead_search_test.h"
#include "engine/pack/pack_kind.h"

enum { WORLDS = 10, STEPS = 90, CASES = 300, PLACEMENTS = 16 };

static int
most_tenths(const struct world *world)
{
    uint32_t gpus = 1;

    for (uint32_t n = 0; n < world->node_count; n++)
        gpus = world->nodes[n].gpus > gpus ? world->nodes[n].gpus : gpus;
    return (int)gpus * 10;
}

/* A world in which something is expected. */
static void
make_world(struct world *world, uint64_t seed)
{
    world_make(world, seed);
    world->weights[0] = 100;
    world->shapes[0].gpus = 1;
    world->shapes[0].parts = 1260;
    world->shapes[0].models = 1; /* so that one model is dearer, where there are more */
}

/* Place a random shape where the index says, if the search says so too. */
static void
pack_bulkhead_test_step(struct ahead *ahead, struct bh_pack *pack, const char *name)
{
    struct world *world = ahead->world;
    uint32_t shape = world_draw(world, world->shape_count), gpus = 0;
    int node = ahead_search(ahead, &world->shapes[shape], &gpus);
    struct bh_pack_placement placement;

    BH_CHECK_EQ(name, bh_pack_find(pack, shape, &placement), node != NO_NODE);
    if (node == NO_NODE || bh_test_failures)
        return;
    BH_CHECK_EQ(name, placement.node, node);
    BH_CHECK_EQ(name, placement.gpus, gpus);
    bh_pack_acquire(pack, shape, &placement);
    world->nodes[placement.node] =
        reference_take(&world->nodes[placement.node], &world->shapes[shape], placement.gpus);
    if (world->shapes[shape].gpus && ++ahead->placed == PLACEMENTS)
        ahead_reckon(ahead);
}

static void
answers_equal_a_search(void **state)
{
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        static struct world world;
        static struct ahead ahead;
        struct bh_pack *pack;
        char name[32];

        snprintf(name, sizeof name, "seed %d", (int)seed);
        make_world(&world, seed);
        pack = world_index(&world, BH_PACK_BULKHEAD);
        ahead_learn(&ahead, &world, most_tenths(&world));
        for (int i = 0; i < STEPS && bh_test_failures == 0; i++)
            pack_bulkhead_test_step(&ahead, pack, name);
        ahead_forget(&ahead);
        free(pack);
        BH_CHECK_DONE();
    }
}

/* The score of each node, and not only of the best. */
static void
scores_are_as_defined(void **state)
{
    static struct world world;
    static struct ahead ahead;
    struct bh_pack *pack;

    make_world(&world, 77);
    pack = world_index(&world, BH_PACK_BULKHEAD);
    ahead_learn(&ahead, &world, most_tenths(&world));
    bh_pack_prepare(pack);
    for (uint32_t i = 0; i < CASES; i++) {
        const struct bh_pack_shape *shape = &world.shapes[i % world.shape_count];
        uint32_t n = world_draw(&world, world.node_count), wanted = 0, gpus = 0;
        const struct bh_pack_host *host = bh_pack_host(pack, n);

        if (!reference_has_capacity(&world.nodes[n], shape))
            continue;
        BH_CHECK_EQ("score", bh_pack_bulkhead_score(pack, host, shape),
                    ahead_best(&ahead, &world.nodes[n], shape, &wanted));
        BH_CHECK_EQ("pick", bh_pack_bulkhead_pick(pack, host, shape, NULL, &gpus),
                    bh_pack_bulkhead_score(pack, host, shape));
        BH_CHECK_EQ("GPUs", gpus, wanted);
    }
    ahead_forget(&ahead);
    free(pack);
    BH_CHECK_DONE();
}

/* Off the grid: any number of parts and thousandths of a core, and nodes that are larger
 * than the tables. */
static void
roughen(struct world *world)
{
    for (uint32_t n = 0; n < world->node_count; n++) {
        struct bh_pack_node *node = &world->nodes[n];

        node->cpu_milli = world_draw(world, 300000);
        for (uint32_t g = 0; g < node->gpus; g++)
            node->parts[g] = (uint16_t)world_draw(world, BH_GPU_PARTS + 1);
    }
    for (uint32_t s = 0; s < world->shape_count; s++) {
        struct bh_pack_shape *shape = &world->shapes[s];

        shape->cpu_milli = world_draw(world, 200000);
        if (shape->gpus == 1)
            shape->parts = 1 + world_draw(world, BH_GPU_PARTS);
    }
}

static bool
fits_somewhere(const struct world *world, const struct bh_pack_shape *shape)
{
    for (uint32_t n = 0; n < world->node_count; n++)
        if (reference_has_capacity(&world->nodes[n], shape))
            return true;
    return false;
}

/* Place and give back at random; FNV-1a over all answers. */
static uint64_t
pack_bulkhead_test_live(struct world *world, struct bh_pack *pack)
{
    uint64_t hash = 0xcbf29ce484222325;
    struct bh_pack_placement placement, last = { 0 };
    uint32_t last_shape = BH_PACK_NOWHERE;

    for (int i = 0; i < STEPS; i++) {
        uint32_t s = world_draw(world, world->shape_count);
        bool found = bh_pack_find(pack, s, &placement);

        BH_CHECK_EQ("placed if it fits", found, fits_somewhere(world, &world->shapes[s]));
        hash = (hash ^ (found ? placement.node * 65536ULL + placement.gpus : 1)) * 0x100000001b3;
        if (!found)
            continue;
        BH_CHECK("with room", reference_has_capacity(&world->nodes[placement.node], &world->shapes[s]));
        bh_pack_acquire(pack, s, &placement);
        if (last_shape != BH_PACK_NOWHERE && i % 3 == 0) {
            bh_pack_release(pack, last_shape, &last);
            world->nodes[last.node] = *bh_pack_node(pack, last.node);
        }
        world->nodes[placement.node] = *bh_pack_node(pack, placement.node);
        last_shape = i % 3 == 0 ? BH_PACK_NOWHERE : s;
        last = placement;
    }
    return hash;
}

static uint64_t
live_once(uint64_t seed, bool expected)
{
    struct world world;
    struct bh_pack *pack;
    uint64_t hash;

    world_make(&world, seed);
    roughen(&world);
    for (uint32_t s = 0; s < world.shape_count && !expected; s++)
        world.weights[s] = 0;
    pack = world_index(&world, BH_PACK_BULKHEAD);
    hash = pack_bulkhead_test_live(&world, pack);
    free(pack);
    return hash;
}

static void
what_fits_is_placed_and_answers_repeat(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        BH_CHECK_EQ("the same again", live_once(seed, true), live_once(seed, true));
        BH_CHECK_EQ("nothing expected", live_once(seed, false), live_once(seed, false));
    }
    BH_CHECK_DONE();
}

static const struct bh_pack_node two_models[] = {
    { 96000, 10000, 0, 2, { 4200, 4200 } },
    { 96000, 10000, 1, 2, { 4200, 4200 } },
};
static const struct bh_pack_shape any = { 1000, 10, 1, 4200, UINT64_MAX };
static const struct bh_pack_shape picky = { 1000, 10, 1, 4200, 1 };

/* Half the demand takes model 0 only: who may, goes to model 1, though node 0 is lower. */
static void
scarce_models_come_last(void **state)
{
    struct bh_pack_caps caps = { 2, 2 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_BULKHEAD);
    struct bh_pack_placement placement;
    uint32_t free_choice, bound;

    for (uint32_t n = 0; n < 2; n++)
        bh_pack_set_node(pack, n, &two_models[n]);
    free_choice = bh_pack_shape(pack, &any);
    bound = bh_pack_shape(pack, &picky);
    assert_true(bh_pack_expect(pack, free_choice, 10));
    assert_true(bh_pack_find(pack, free_choice, &placement));
    assert_int_equal(placement.node, 0);
    assert_true(bh_pack_expect(pack, bound, 10));
    assert_true(bh_pack_find(pack, free_choice, &placement));
    assert_int_equal(placement.node, 1);
    bh_pack_acquire(pack, free_choice, &placement);
    assert_true(bh_pack_find(pack, free_choice, &placement));
    assert_int_equal(placement.node, 1);
    bh_pack_acquire(pack, free_choice, &placement);
    assert_true(bh_pack_find(pack, free_choice, &placement));
    assert_int_equal(placement.node, 0);
    free(pack);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(answers_equal_a_search),
    cmocka_unit_test(scores_are_as_defined),
    cmocka_unit_test(what_fits_is_placed_and_answers_repeat),
    cmocka_unit_test(scarce_models_come_last),
};
BH_TEST_MAIN(tests)
