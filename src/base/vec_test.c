#include "base/vec.h"

#include "base/test.h"

static void
room_doubles_up_to_the_most(void **state)
{
    static const struct {
        size_t capacity, wanted, most;
        bool fits;
        size_t becomes;
        /* clang-format off */
    } rows[] = {
        { 0, 1, 1000, true, 16 },    { 0, 17, 1000, true, 32 },     { 16, 16, 1000, true, 16 },
        { 16, 17, 1000, true, 32 },  { 16, 900, 1000, true, 1000 }, { 16, 1000, 1000, true, 1000 },
        { 16, 17, 20, true, 20 },    { 0, 1, 5, true, 5 },          { 0, 6, 5, false, 0 },
        { 16, 21, 20, false, 16 }, 
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        size_t capacity = rows[i].capacity;
        uint64_t *items = capacity ? calloc(capacity, sizeof *items) : NULL;
        char name[32];

        snprintf(name, sizeof name, "row %zu", i);
        BH_CHECK_EQ(name, bh_vec_reserve(&items, &capacity, rows[i].wanted, rows[i].most), rows[i].fits);
        BH_CHECK_EQ(name, capacity, rows[i].becomes);
        free(items);
    }
    BH_CHECK_DONE();
}

static void
items_stay_and_new_ones_are_zero(void **state)
{
    uint32_t capacity = 0, *items = NULL;

    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(bh_vec_reserve(&items, &capacity, i + 1, 1000));
        assert_int_equal(items[i], 0);
        items[i] = i + 7;
    }
    for (uint32_t i = 0; i < 1000; i++)
        BH_CHECK_EQ("kept", items[i], i + 7);
    assert_false(bh_vec_reserve(&items, &capacity, 1001, 1000));
    assert_int_equal(capacity, 1000);
    assert_int_equal(items[999], 1006);
    free(items);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(room_doubles_up_to_the_most),
    cmocka_unit_test(items_stay_and_new_ones_are_zero),
};

BH_TEST_MAIN(tests)
