/* Prices by example. */
#include "engine/pack/pack_price.h"

#include <stdlib.h>

#include "base/test.h"

enum { GPU = BH_GPU_PARTS };

static const struct bh_pack_shape any = { 0, 0, 1, GPU, UINT64_MAX };
static const struct bh_pack_shape only_0 = { 0, 0, 1, GPU, 1 };
static const struct bh_pack_shape half_any = { 0, 0, 1, GPU / 2, UINT64_MAX };

/* `gpus` nodes of a GPU each, the first `scarce` of model 0 and the others of model 1; two
 * thirds of the demand take any, one third model 0 only. */
static struct bh_pack *
pack_price_test_open_index(uint32_t gpus, uint32_t scarce)
{
    struct bh_pack_caps caps = { gpus, 3 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_BULKHEAD);

    for (uint32_t n = 0; n < gpus; n++)
        bh_pack_set_node(pack, n,
                         &(struct bh_pack_node){ .model = n >= scarce, .gpus = 1, .parts = { GPU } });
    assert_true(bh_pack_expect(pack, bh_pack_shape(pack, &any), 2));
    assert_true(bh_pack_expect(pack, bh_pack_shape(pack, &only_0), 1));
    (void)bh_pack_shape(pack, &half_any);
    bh_pack_prepare(pack);
    return pack;
}

/* Scarcity is a third over the share of GPUs; 64 is 1, in steps of 8, to 256. */
static const struct {
    const char *name;
    uint32_t gpus, scarce, level;
} levels[] = {
    { "half of the GPUs, two thirds of 64", 100, 50, 40 },
    { "a third: just below 1", 99, 33, 56 },
    { "a quarter", 100, 25, 80 },
    { "one in a hundred: the most", 100, 1, 256 },
    { "all: all sets are the same", 10, 10, 0 },
};

static void
levels_follow_scarcity(void **state)
{
    for (size_t i = 0; i < BH_COUNT(levels); i++) {
        struct bh_pack *pack = pack_price_test_open_index(levels[i].gpus, levels[i].scarce);

        BH_CHECK_EQ(levels[i].name, pack->market.level[0], levels[i].level);
        BH_CHECK_EQ("model 1", pack->market.level[1], 0);
        BH_CHECK_EQ("a GPU", bh_pack_price(pack, 0, &any), levels[i].level);
        BH_CHECK_EQ("half a GPU", bh_pack_price(pack, 0, &half_any), levels[i].level / 2);
        BH_CHECK_EQ("model 1", bh_pack_price(pack, 1, &any), 0);
        free(pack);
    }
    BH_CHECK_DONE();
}

/* Placements take model 0 away; every sixteenth is reckoned with. */
static void
levels_move_with_placements(void **state)
{
    struct bh_pack *pack = pack_price_test_open_index(100, 50);

    for (uint32_t n = 0; n < 48; n++) {
        struct bh_pack_placement placement = { n, 1 };
        uint32_t before = pack->market.level[0];

        bh_pack_acquire(pack, 0, &placement);
        BH_CHECK_EQ("moves at the sixteenth", pack->market.level[0] != before,
                    (n + 1) % BH_PACK_PRICE_PLACEMENTS == 0);
    }
    BH_CHECK_EQ("2 of 52 free", pack->market.level[0], 256);
    for (uint32_t n = 0; n < 48; n++)
        bh_pack_release(pack, 0, &(struct bh_pack_placement){ n, 1 });
    BH_CHECK_EQ("as before", pack->market.level[0], 40);
    free(pack);
    BH_CHECK_DONE();
}

static void
a_node_that_changes_model_changes_supply(void **state)
{
    struct bh_pack *pack = pack_price_test_open_index(100, 50);

    for (uint32_t n = 0; n < 25; n++)
        bh_pack_set_node(pack, n, &(struct bh_pack_node){ .model = 1, .gpus = 1, .parts = { GPU } });
    assert_int_equal(pack->market.free_parts[0], 25 * GPU);
    assert_int_equal(pack->market.free_parts[1], 75 * GPU);
    for (uint32_t i = 0; i < BH_PACK_PRICE_PLACEMENTS; i++) {
        bh_pack_acquire(pack, 0, &(struct bh_pack_placement){ 30, 1 });
        bh_pack_release(pack, 0, &(struct bh_pack_placement){ 30, 1 });
    }
    assert_int_equal(pack->market.level[0], 80);
    free(pack);
}

/* Past the sets that are kept, further ones count in the demand only. */
static void
too_many_sets_are_left_out(void **state)
{
    struct bh_pack_caps caps = { 64, 80 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_BULKHEAD);

    for (uint32_t n = 0; n < 64; n++)
        bh_pack_set_node(pack, n, &(struct bh_pack_node){ .model = n, .gpus = 1, .parts = { GPU } });
    for (uint32_t i = 0; i < 80; i++) {
        struct bh_pack_shape shape = only_0;

        shape.models = i < 63 ? 1ULL << i : 3ULL << (i - 63);
        assert_true(bh_pack_expect(pack, bh_pack_shape(pack, &shape), 1));
    }
    bh_pack_prepare(pack);
    assert_int_equal(pack->market.sets, BH_PACK_SETS_MAX);
    assert_int_equal(pack->kinds.count, BH_PACK_KINDS_MAX);
    free(pack);
}

/* Shapes that no job can have raise no price. */
static void
impossible_shapes_are_no_demand(void **state)
{
    struct bh_pack_caps caps = { 2, 1 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_BULKHEAD);
    struct bh_pack_shape huge = { 0, 0, UINT32_MAX, GPU, 1 };
    struct bh_pack_placement placement;

    for (uint32_t n = 0; n < 2; n++)
        bh_pack_set_node(pack, n, &(struct bh_pack_node){ .model = n, .gpus = 1, .parts = { GPU } });
    assert_true(bh_pack_expect(pack, bh_pack_shape(pack, &huge), BH_PACK_WEIGHT_MAX - 1));
    assert_false(bh_pack_find(pack, 0, &placement));
    assert_int_equal(pack->market.level[0], 0);
    free(pack);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(levels_follow_scarcity),
    cmocka_unit_test(levels_move_with_placements),
    cmocka_unit_test(a_node_that_changes_model_changes_supply),
    cmocka_unit_test(too_many_sets_are_left_out),
    cmocka_unit_test(impossible_shapes_are_no_demand),
};
BH_TEST_MAIN(tests)
