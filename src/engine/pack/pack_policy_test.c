/* Policies by example: which node, which GPUs. */
#include "engine/pack/pack_internal.h"

#include <stdlib.h>

#include "base/test.h"

static const struct {
    const char *name;
    uint32_t gpus, count, want;
} firsts[] = {
    { "none", 0x00, 0, 0x00 },  { "one", 0x01, 1, 0x01 },      { "lowest", 0xf0, 1, 0x10 },
    { "three", 0xd4, 3, 0x54 }, { "all", 0xffff, 16, 0xffff },
};

static void
first_gpus_are_the_lowest(void **state)
{
    for (size_t i = 0; i < BH_COUNT(firsts); i++)
        BH_CHECK_EQ(firsts[i].name, bh_pack_first_gpus(firsts[i].gpus, firsts[i].count), firsts[i].want);
    BH_CHECK_DONE();
}

enum { NODES = 3 };

/* Three nodes of two GPUs: wholly free, half used, and one with scraps. */
static const struct bh_pack_node nodes[NODES] = {
    { 96000, 400000, 0, 2, { 4200, 4200 } },
    { 48000, 200000, 0, 2, { 4200, 2100 } },
    { 8000, 40000, 0, 2, { 840, 420 } },
};

static const struct {
    const char *name;
    struct bh_pack_shape shape;
    uint32_t node[BH_PACK_POLICIES], gpus[BH_PACK_POLICIES];
} cases[] = {
    /* Best fit takes the GPU with least left; FGD the one whose rest fits no expected job. */
    { "a tenth goes to the scraps", { 4000, 1000, 1, 420, 1 }, { 2, 2, 2 }, { 2, 1, 1 } },
    { "a half fills the half", { 4000, 1000, 1, 2100, 1 }, { 1, 1, 1 }, { 2, 2, 2 } },
    { "a GPU where another is broken", { 4000, 1000, 1, 4200, 1 }, { 1, 1, 1 }, { 1, 1, 1 } },
    { "two GPUs", { 4000, 1000, 2, 4200, 1 }, { 0, 0, 0 }, { 3, 3, 3 } },
    /* To FGD cores cost nothing while every expected shape still fits. */
    { "cores alone", { 8000, 1000, 0, 0, 1 }, { 2, 0, 0 }, { 0, 0, 0 } },
};

static struct bh_pack *
pack_policy_test_open_index(enum bh_pack_policy policy)
{
    struct bh_pack_caps caps = { NODES, BH_COUNT(cases) };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, policy);

    for (uint32_t n = 0; n < NODES; n++)
        bh_pack_set_node(pack, n, &nodes[n]);
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        assert_true(bh_pack_expect(pack, bh_pack_shape(pack, &cases[i].shape), 1));
    return pack;
}

static void
placements_are_as_given(void **state)
{
    for (enum bh_pack_policy p = 0; p < BH_PACK_POLICIES; p++) {
        struct bh_pack *pack = pack_policy_test_open_index(p);

        for (size_t i = 0; i < BH_COUNT(cases); i++) {
            struct bh_pack_placement placement = { 9, 9 };

            BH_CHECK(cases[i].name, bh_pack_find(pack, (uint32_t)i, &placement));
            BH_CHECK_EQ(cases[i].name, placement.node, cases[i].node[p]);
            BH_CHECK_EQ(cases[i].name, placement.gpus, cases[i].gpus[p]);
        }
        free(pack);
    }
    BH_CHECK_DONE();
}

static void
every_policy_has_a_name(void **state)
{
    for (int p = 0; p < BH_PACK_POLICIES; p++)
        assert_non_null(bh_pack_policy_names[p]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(first_gpus_are_the_lowest),
    cmocka_unit_test(placements_are_as_given),
    cmocka_unit_test(every_policy_has_a_name),
};
BH_TEST_MAIN(tests)
