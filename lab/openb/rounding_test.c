/* Sums of doubles made in integers, against the processor's. */
#include "lab/openb/rounding.h"

#include "engine/pack/pack_reference_test.h"

/* What seems lost where nothing is: 1 yes, 0 no, -1 not a case. */
static int
reference_verdict(const struct world *world, uint32_t n, const struct bh_pack_shape *shape)
{
    const struct bh_pack_node *node = &world->nodes[n];
    struct bh_pack_node left;
    double gain;

    if (!reference_has_capacity(node, shape))
        return -1;
    left = reference_take(node, shape, reference_first_gpus(node, shape));
    if (reference_loss(world, node) != reference_loss(world, &left))
        return -1;
    gain = reference_sum(world, node) - reference_sum(world, &left);
    return (int)(1 / (1 + exp(-(gain / 1000))) * 100) < 50;
}

/* The expected shapes of a world, in the artifact's order; returns how many. */
static uint32_t
expected_of(const struct world *world, struct bh_openb_kind ret_expected[WORLD_SHAPES])
{
    uint32_t order[WORLD_SHAPES], count = 0;

    for (uint32_t s = 0; s < world->shape_count; s++)
        order[s] = s;
    qsort_r(order, world->shape_count, sizeof *order, reference_order, (void *)(uintptr_t)world);
    for (uint32_t i = 0; i < world->shape_count; i++)
        if (world->weights[order[i]])
            ret_expected[count++] =
                (struct bh_openb_kind){ world->shapes[order[i]], world->weights[order[i]] };
    return count;
}

static void
verdicts_are_the_processors(void **state)
{
    uint32_t cases[2] = { 0 };

    for (uint64_t seed = 1; seed <= 600; seed++) {
        static struct world world;
        struct bh_openb_kind expected[WORLD_SHAPES];
        struct bh_openb_rounding *rounding;

        world_make(&world, seed);
        rounding = bh_openb_rounding_new(expected, expected_of(&world, expected), world.others);
        for (uint32_t i = 0; i < world.node_count * world.shape_count; i++) {
            const struct bh_pack_shape *shape = &world.shapes[i / world.node_count];
            uint32_t n = i % world.node_count;
            int verdict = reference_verdict(&world, n, shape);

            if (verdict < 0)
                continue;
            cases[verdict]++;
            BH_CHECK_EQ("verdict",
                        bh_openb_rounding_seems_loss(rounding, &world.nodes[n], shape,
                                                     reference_first_gpus(&world.nodes[n], shape)),
                        verdict);
        }
        free(rounding);
    }
    BH_CHECK_DONE();
    assert_true(cases[0] > 1000 && cases[1] > 10); /* both kinds were met */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(verdicts_are_the_processors),
};
BH_TEST_MAIN(tests)
