/* F from its definition; FGD's points from libm. */
#include "engine/pack/pack_loss.h"

#include "engine/pack/pack_reference_test.h"

static void
losses_follow_the_definition(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        static struct world world;
        struct bh_pack *pack;

        world_make(&world, seed);
        pack = world_index(&world, BH_PACK_FGD);
        (void)bh_pack_fragmentation(pack);
        for (uint32_t n = 0; n < world.node_count; n++)
            BH_CHECK_EQ("loss", bh_pack_host(pack, n)->loss, reference_loss(&world, &world.nodes[n]));
        free(pack);
    }
    BH_CHECK_DONE();
}

static void
check_choices(const struct world *world, const struct bh_pack *pack, uint32_t n, uint32_t s)
{
    const struct bh_pack_node *node = &world->nodes[n];
    const struct bh_pack_shape *shape = &world->shapes[s];
    struct bh_pack_choice choices[BH_PACK_GPUS_MAX];
    uint32_t count;

    if (!reference_has_capacity(node, shape))
        return;
    count = bh_pack_loss_choices(pack, bh_pack_host(pack, n), shape, choices);
    BH_CHECK("count", count >= 1 && count <= BH_PACK_GPUS_MAX);
    for (uint32_t c = 0; c < count; c++) {
        struct bh_pack_node left = reference_take(node, shape, choices[c].gpus);

        BH_CHECK_EQ("gpus", __builtin_popcount(choices[c].gpus), shape->gpus);
        BH_CHECK("ascending", c == 0 || choices[c].gpus > choices[c - 1].gpus);
        BH_CHECK_EQ("gain", choices[c].gain, reference_loss(world, node) - reference_loss(world, &left));
    }
}

static void
gains_are_differences(void **state)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        static struct world world;
        struct bh_pack *pack;

        world_make(&world, seed);
        pack = world_index(&world, BH_PACK_FGD);
        (void)bh_pack_fragmentation(pack);
        for (uint32_t n = 0; n < world.node_count; n++)
            for (uint32_t s = 0; s < world.shape_count; s++)
                check_choices(&world, pack, n, s);
        free(pack);
    }
    BH_CHECK_DONE();
}

/* The least gain of each point by libm's long double, and one unit of parts times weight
 * below it.  The table's resolution of 2^-40 is finer than that by far. */
static void
points_are_the_sigmoid(void **state)
{
    static const uint32_t weights[] = { 1, 7, 100, 8152, (1 << 20) - 1 };

    for (size_t i = 0; i < BH_COUNT(weights); i++) {
        struct bh_pack_caps caps = { 1, 1 };
        struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_FGD);
        struct bh_pack_shape shape = { .cpu_milli = 1, .models = 1 };

        assert_true(bh_pack_expect(pack, bh_pack_shape(pack, &shape), weights[i]));
        (void)bh_pack_fragmentation(pack);
        for (uint32_t point = 1; point < 100; point++) {
            long double least = logl(point / (100.0L - point)) * BH_GPU_PARTS * weights[i];
            int64_t gain = (int64_t)ceill(least);

            BH_CHECK_EQ("reached", bh_pack_loss_points(pack, gain), point);
            BH_CHECK_EQ("not yet", bh_pack_loss_points(pack, gain - 1), point - 1);
        }
        free(pack);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(losses_follow_the_definition),
    cmocka_unit_test(gains_are_differences),
    cmocka_unit_test(points_are_the_sigmoid),
};
BH_TEST_MAIN(tests)
