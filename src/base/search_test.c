#include "base/search.h"

#include "base/test.h"

struct item {
    char before[3];
    uint64_t number;
};

static void
search_test_finds(void **state)
{
    static const struct item items[] = {
        { .number = 2 }, { .number = 4 }, { .number = 4 }, { .number = 9 }, { .number = UINT64_MAX },
    };
    static const struct {
        const char *what;
        size_t count;
        uint64_t wanted;
        size_t at;
    } rows[] = {
        { "of none", 0, 4, 0 },
        { "before the first", 5, 0, 0 },
        { "the first", 5, 2, 0 },
        { "between", 5, 3, 1 },
        { "the first of equal ones", 5, 4, 1 },
        { "behind equal ones", 5, 5, 3 },
        { "the last", 5, UINT64_MAX, 4 },
        { "behind the last", 4, 10, 4 },
        { "of one, before", 1, 1, 0 },
        { "of one, behind", 1, 3, 1 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].what, bh_search(items, rows[i].count, number, rows[i].wanted), rows[i].at);
    BH_CHECK_EQ("no array at all", bh_search((const struct item *)NULL, 0, number, 5), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(search_test_finds),
};

BH_TEST_MAIN(tests)
