#include "base/nearest.h"

#include "base/test.h"

static const char *const words[] = { "gpu", "gpus", "node", "nodes", "tenant" };

static const struct {
    const char *wanted, *word; /* NULL: none is near */
    /* clang-format off */
} rows[] = {
    { "gpuss", "gpus" },  { "gpx", "gpu" },     { "ndoe", "node" },  { "tenants", "tenant" },
    { "zebra", NULL },    { "g", NULL },        { "", NULL },        { "gp", "gpu" },
    { "a word that is longer than any that is compared", NULL },
};
/* clang-format on */

static void
test_nearest(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_nearest nearest = { 0 };

        for (size_t w = 0; w < BH_COUNT(words); w++)
            bh_nearest_try(&nearest, rows[i].wanted, words[w]);
        BH_CHECK_STR(rows[i].wanted, nearest.word ? nearest.word : "(none)",
                     rows[i].word ? rows[i].word : "(none)");
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_nearest) };
BH_TEST_MAIN(tests)
