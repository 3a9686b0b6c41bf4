#include "engine/gpu/candidates.h"

#include "base/test.h"
#include "model/geometry.h"

/* On an H100 that is empty or has these partitions: where a partition breaks up least, and the same
 * when it is asked again with others between. */
static void
the_starts_that_break_up_least(void **state)
{
    static const struct {
        const char *name, *stands;
        uint32_t at;
        const char *wanted; /* NULL: the whole GPU */
        uint32_t starts;
    } cases[] = {
        { "whole, empty", NULL, 0, NULL, 1 },
        { "whole, in use", "1g.10gb", 0, NULL, 0 },
        { "seven sevenths", NULL, 0, "7g.80gb", 1 },
        { "no room", "7g.80gb", 0, "1g.10gb", 0 },
        { "four sevenths have one place", NULL, 0, "4g.40gb", 1 },
        { "three beside four", "4g.40gb", 0, "3g.40gb", 1 << 4 },
    };

    for (uint32_t round = 0; round < 2; round++)
        for (size_t i = 0; i < BH_COUNT(cases); i++) {
            const struct bh_profile *wanted =
                cases[i].wanted ? bh_profile_find(BH_GPU_H100_80GB, cases[i].wanted) : NULL;
            struct bh_occupancy occupancy = { 0 };
            struct bh_candidates starts;

            bh_candidates_init(&starts, BH_GPU_H100_80GB, wanted ? wanted->id.v : BH_PROFILE_WHOLE.v);
            bh_candidates_find(&starts, &occupancy);
            if (cases[i].stands)
                bh_occupancy_add(&occupancy, bh_profile_find(BH_GPU_H100_80GB, cases[i].stands), cases[i].at);
            BH_CHECK_EQ(cases[i].name, bh_candidates_find(&starts, &occupancy)->starts, cases[i].starts);
        }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_starts_that_break_up_least),
};
BH_TEST_MAIN(tests)
