#include "base/disk_space.h"

#include "base/test.h"

#define MIB (UINT64_C(1) << 20)

static const struct {
    const char *name;
    uint64_t size, free, bytes;
    bool left;
} rows[] = {
    { "large disk, little taken", 1 << 20, 1 << 19, 100, true },
    { "down to what is kept", 8192, 512, 256, true },
    { "one below that", 8192, 512, 257, false },
    { "nothing more, at the mark", 8192, 256, 0, true },
    { "nothing more, below it", 8192, 255, 0, false },
    { "small disk keeps an eighth", 64, 20, 12, true },
    { "and no more of it", 64, 20, 13, false },
    { "more than there is", 8192, 512, 9000, false },
    { "no disk at all", 0, 0, 100, true },
};

static void
each_row(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_disk_space space = { rows[i].size * MIB, rows[i].free * MIB };

        BH_CHECK_EQ(rows[i].name,
                    bh_disk_space_is_left(&space, bh_disk_space_reserved(&space), rows[i].bytes * MIB),
                    rows[i].left);
    }
    BH_CHECK_DONE();
}

/* What is kept may be said, as disk_reserve of bulkheadd.conf does. */
static void
with_an_amount_of_its_own(void **state)
{
    const struct bh_disk_space space = { 8192 * MIB, 512 * MIB };

    assert_true(bh_disk_space_is_left(&space, 512 * MIB, 0));
    assert_false(bh_disk_space_is_left(&space, 512 * MIB + 1, 0));
    assert_false(bh_disk_space_is_left(&space, UINT64_MAX, 0));
    assert_true(bh_disk_space_is_left(&space, 0, 512 * MIB));
}

static void
of_a_file(void **state)
{
    assert_true(bh_disk_leaves_space(-1, 1));
    assert_true(bh_disk_space_at("/").size > 0);
    assert_int_equal(bh_disk_space_at("/nowhere/at/all").size, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_row),
    cmocka_unit_test(with_an_amount_of_its_own),
    cmocka_unit_test(of_a_file),
};

BH_TEST_MAIN(tests)
