/* Waste by example; pack_bulkhead_test.c has random cases against the definition. */
#include "engine/pack/pack_waste.h"

#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "engine/pack/pack_kind.h"

enum { HUNDREDTH = 640 }; /* of a GPU, in units of waste */

static const struct bh_pack_node node = { 32000, 10000, 0, 2, { 4200, 4200 } };
static const struct bh_pack_shape half = { 2000, 0, 1, 2100, 1 };
static const struct bh_pack_shape pair = { 2000, 0, 2, 4200, 1 };
static const struct bh_pack_shape other_model = { 2000, 0, 1, 2100, 2 };

static struct bh_pack *
pack_waste_test_open_index(const struct bh_pack_shape *expected)
{
    struct bh_pack_caps caps = { 2, 4 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_BULKHEAD);

    bh_pack_set_node(pack, 0, &node);
    assert_true(bh_pack_expect(pack, bh_pack_shape(pack, expected), 5));
    bh_pack_prepare(pack);
    return pack;
}

/* The table of one GPU's row for so many cores. */
static const struct bh_pack_waste_row *
row_at(const struct bh_pack *pack, uint32_t class)
{
    const struct bh_pack_waste_row *rows = bh_pack_at(pack, pack->waste_rows);

    return &rows[class];
}

static void
halves_fill_a_gpu(void **state)
{
    struct bh_pack *pack = pack_waste_test_open_index(&half);

    for (int r = 0; r <= BH_PACK_LEVELS; r++) {
        BH_CHECK_EQ("too few cores", row_at(pack, 0)->level[r], r * HUNDREDTH);
        BH_CHECK_EQ("cores", row_at(pack, 1)->level[r], r % 50 * HUNDREDTH);
    }
    BH_CHECK_EQ("no several", row_at(pack, 1)->several, 0);
    free(pack);
    BH_CHECK_DONE();
}

static void
pairs_need_two_free_gpus(void **state)
{
    struct bh_pack *pack = pack_waste_test_open_index(&pair);
    const struct bh_pack_waste_row *row = row_at(pack, 1);

    assert_int_equal(row->several, 65536);
    assert_int_equal(row->over[1], 65536);
    assert_int_equal(row->over[2], 0);
    assert_int_equal(row_at(pack, 0)->several, 0);
    free(pack);
}

/* Two halves on one GPU leave the other whole: 4 cores and a GPU of 32 and two.  The node's
 * table says nothing here, since whatever is left serves more halves, until cores run out.
 */
static void
choices_are_by_gpu(void **state)
{
    struct bh_pack *pack = pack_waste_test_open_index(&half);
    struct bh_pack_choice choices[BH_PACK_GPUS_MAX];
    struct bh_pack_placement placement = { 0, 2 };

    assert_int_equal(bh_pack_waste_choices(pack, bh_pack_host(pack, 0), &half, choices), 1);
    assert_int_equal(choices[0].gpus, 1);
    bh_pack_acquire(pack, 0, &placement);
    assert_int_equal(bh_pack_waste_choices(pack, bh_pack_host(pack, 0), &half, choices), 2);
    assert_int_equal(choices[0].gpus, 1);
    assert_int_equal(choices[1].gpus, 2);
    assert_int_equal(choices[0].gain, choices[1].gain);
    free(pack);
}

/* Of 100 shares of a quarter none fits 24 hundredths. */
static void
what_no_job_may_use_is_waste(void **state)
{
    struct bh_pack *pack = pack_waste_test_open_index(&other_model);

    for (int r = 0; r <= BH_PACK_LEVELS; r++)
        BH_CHECK_EQ("level", row_at(pack, 1)->level[r], r * HUNDREDTH);
    /* 2 GPUs, and an eighth of them and of 32 cores at 16 thousandths. */
    BH_CHECK_EQ("node", bh_pack_host(pack, 0)->waste, 2 * 100 * HUNDREDTH + (2000 + 32 * 16) * 8);
    free(pack);
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    uint32_t cpu_milli, gpus;
    bool covered;
} larger[] = {
    { "as large", 32000, 2, true },
    { "as many cores as the table goes to", 63000, 2, true },
    { "more cores", 64000, 2, false },
    { "more GPUs", 32000, 3, false },
    { "less", 0, 0, true },
};

static void
larger_nodes_are_not_covered(void **state)
{
    for (size_t i = 0; i < BH_COUNT(larger); i++) {
        struct bh_pack *pack = pack_waste_test_open_index(&half);
        struct bh_pack_host host = *bh_pack_host(pack, 0);
        struct bh_pack_node next = node;
        struct bh_pack_placement placement;

        next.cpu_milli = host.left.cpu_milli = larger[i].cpu_milli;
        next.gpus = host.left.gpus = larger[i].gpus;
        BH_CHECK_EQ(larger[i].name, bh_pack_waste_covers(pack, &host), larger[i].covered);
        bh_pack_set_node(pack, 1, &next);
        BH_CHECK(larger[i].name, bh_pack_find(pack, 0, &placement));
        BH_CHECK(larger[i].name, bh_pack_waste_covers(pack, bh_pack_host(pack, 1)));
        free(pack);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(halves_fill_a_gpu),
    cmocka_unit_test(pairs_need_two_free_gpus),
    cmocka_unit_test(choices_are_by_gpu),
    cmocka_unit_test(what_no_job_may_use_is_waste),
    cmocka_unit_test(larger_nodes_are_not_covered),
};
BH_TEST_MAIN(tests)
