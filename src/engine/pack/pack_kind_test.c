/* Which models are of one kind, and where their nodes sit. */
#include "engine/pack/pack_kind.h"

#include <stdlib.h>

#include "base/test.h"

enum { NODES = 40, MODELS = 20 };

static const struct bh_pack_node plain = { 1000, 1000, 0, 1, { 4200 } };

static struct bh_pack *
pack_kind_test_open_index(enum bh_pack_policy policy)
{
    struct bh_pack_caps caps = { NODES, MODELS + 2 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, policy);

    for (uint32_t n = 0; n < NODES; n++) {
        struct bh_pack_node node = plain;

        node.model = n % MODELS;
        bh_pack_set_node(pack, n, &node);
    }
    return pack;
}

static uint32_t
pack_kind_test_expect(struct bh_pack *pack, uint64_t models)
{
    struct bh_pack_shape shape = { 500, 0, 1, 420, models };
    uint32_t number = bh_pack_shape(pack, &shape);

    assert_true(bh_pack_expect(pack, number, 1));
    return number;
}

static void
models_differ_by_shapes(void **state)
{
    struct bh_pack *pack = pack_kind_test_open_index(BH_PACK_BULKHEAD);

    bh_pack_prepare(pack);
    assert_int_equal(pack->kinds.count, 1);
    pack_kind_test_expect(pack, UINT64_MAX);
    pack_kind_test_expect(pack, 0x00f);
    pack_kind_test_expect(pack, 0x00c);
    bh_pack_prepare(pack);
    assert_int_equal(pack->kinds.count, 3);
    for (uint32_t model = 0; model < MODELS; model++)
        BH_CHECK_EQ("kind", pack->kinds.of[model], model < 2 ? 0 : model < 4 ? 1 : 2);
    free(pack);
    BH_CHECK_DONE();
}

static void
the_last_kind_takes_the_rest(void **state)
{
    struct bh_pack *pack = pack_kind_test_open_index(BH_PACK_BULKHEAD);

    for (uint32_t model = 0; model < MODELS; model++)
        pack_kind_test_expect(pack, 1ULL << model);
    bh_pack_prepare(pack);
    assert_int_equal(pack->kinds.count, BH_PACK_KINDS_MAX);
    assert_int_equal(pack->kinds.of[BH_PACK_KINDS_MAX - 1], BH_PACK_KINDS_MAX - 1);
    assert_int_equal(pack->kinds.of[MODELS - 1], BH_PACK_KINDS_MAX - 1);
    free(pack);
}

/* Everyone has a seat of their own, inside the tree. */
static void
seats_are_all_different(void **state)
{
    struct bh_pack *pack = pack_kind_test_open_index(BH_PACK_BULKHEAD);
    const uint32_t *positions, *occupants;

    assert_null(bh_pack_kind_positions(pack));
    for (uint32_t model = 0; model < MODELS; model++)
        pack_kind_test_expect(pack, 1ULL << model);
    bh_pack_prepare(pack);
    positions = bh_pack_kind_positions(pack);
    occupants = bh_pack_at(pack, pack->occupants);
    assert_non_null(positions);
    for (uint32_t n = 0; n < NODES; n++) {
        BH_CHECK("in the tree", positions[n] < pack->stride);
        BH_CHECK_EQ("alone", occupants[positions[n]], n);
    }
    free(pack);
    BH_CHECK_DONE();
}

/* Of equal nodes of different kinds the lowest number; a dearer kind loses. */
static void
kinds_compete_after_prices(void **state)
{
    struct bh_pack *pack = pack_kind_test_open_index(BH_PACK_BULKHEAD);
    struct bh_pack_shape shape = { 500, 0, 1, 4200, UINT64_MAX };
    int32_t *tree;

    pack_kind_test_expect(pack, 0x1);
    pack_kind_test_expect(pack, 0x2);
    bh_pack_prepare(pack);
    tree = bh_pack_at(pack, pack->trees);
    for (uint32_t k = 0; k < pack->kinds.count; k++)
        bh_pack_tree_clear(&pack->kinds.stand[k].plan, tree + pack->kinds.stand[k].first);
    assert_int_equal(bh_pack_kind_best(pack, tree, &shape), BH_PACK_NOWHERE);
    for (uint32_t n = 1; n < 4; n++)
        bh_pack_kind_set(pack, tree, bh_pack_kind(pack, bh_pack_node(pack, n)),
                         bh_pack_kind_positions(pack)[n], 7);
    pack->market.level[0] = pack->market.level[1] = pack->market.level[2] = 0;
    assert_int_equal(bh_pack_kind_best(pack, tree, &shape), 1);
    pack->market.level[1] = 8;
    assert_int_equal(bh_pack_kind_best(pack, tree, &shape), 2);
    pack->market.level[2] = 9;
    assert_int_equal(bh_pack_kind_best(pack, tree, &shape), 1);
    free(pack);
}

/* Prices are not for the other policies: one tournament, by node number. */
static void
other_policies_have_one_kind(void **state)
{
    struct bh_pack *pack = pack_kind_test_open_index(BH_PACK_FGD);

    pack_kind_test_expect(pack, 0x1);
    bh_pack_prepare(pack);
    assert_int_equal(pack->kinds.count, 1);
    assert_null(bh_pack_kind_positions(pack));
    free(pack);
}

static void
trees_of_many_kinds_fit_the_stride(void **state)
{
    for (uint32_t nodes = 1; nodes < 6000; nodes = nodes * 3 / 2 + 1) {
        uint32_t kinds = nodes < BH_PACK_KINDS_MAX ? nodes : BH_PACK_KINDS_MAX, sum = 0;

        for (uint32_t k = 0; k < kinds; k++)
            sum += bh_pack_tree_plan(nodes / kinds + (k < nodes % kinds)).scores;
        BH_CHECK("fits", sum <= bh_pack_kind_stride(nodes, kinds));
        BH_CHECK_EQ("one", bh_pack_kind_stride(nodes, 1), bh_pack_tree_plan(nodes).scores);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(models_differ_by_shapes),      cmocka_unit_test(the_last_kind_takes_the_rest),
    cmocka_unit_test(seats_are_all_different),      cmocka_unit_test(kinds_compete_after_prices),
    cmocka_unit_test(other_policies_have_one_kind), cmocka_unit_test(trees_of_many_kinds_fit_the_stride),
};
BH_TEST_MAIN(tests)
