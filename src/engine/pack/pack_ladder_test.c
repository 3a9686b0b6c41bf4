/* Counting rungs: equal to counting them one by one. */
#include "engine/pack/pack_ladder.h"

#include "base/test.h"

static const struct {
    const char *name;
    uint32_t count;
    int64_t rungs[6];
} ladders[] = {
    { "none", 0, { 0 } },
    { "one", 1, { 1000 } },
    { "close", 4, { 1, 2, 3, 4 } },
    { "negative", 5, { -4000, -30, 0, 30, 4000 } },
    { "far apart", 3, { -(1LL << 40), 5, 1LL << 40 } },
    { "crowded at one end", 6, { 0, 1, 2, 3, 4, 1LL << 36 } },
};

static uint32_t
count_rungs(const int64_t *rungs, uint32_t count, int64_t value)
{
    uint32_t below = 0;

    while (below < count && rungs[below] <= value)
        below++;
    return below;
}

static void
counts_are_exact(void **state)
{
    static struct bh_pack_ladder ladder;

    for (size_t i = 0; i < BH_COUNT(ladders); i++) {
        const int64_t *rungs = ladders[i].rungs;
        uint32_t count = ladders[i].count;

        bh_pack_ladder_build(&ladder, rungs, count);
        for (int shift = 0; shift < 62; shift++) {
            for (int64_t near = -2; near <= 2; near++) {
                int64_t far = (1LL << shift) + near;

                BH_CHECK_EQ(ladders[i].name, bh_pack_ladder_count(&ladder, far),
                            count_rungs(rungs, count, far));
                BH_CHECK_EQ(ladders[i].name, bh_pack_ladder_count(&ladder, -far),
                            count_rungs(rungs, count, -far));
            }
        }
        for (uint32_t r = 0; r < count; r++)
            for (int64_t near = -1; near <= 1; near++)
                BH_CHECK_EQ(ladders[i].name, bh_pack_ladder_count(&ladder, rungs[r] + near),
                            count_rungs(rungs, count, rungs[r] + near));
    }
    BH_CHECK_DONE();
}

static void
a_full_ladder_counts_too(void **state)
{
    static struct bh_pack_ladder ladder;
    int64_t rungs[BH_PACK_RUNGS_MAX];

    for (int64_t r = 0; r < BH_PACK_RUNGS_MAX; r++)
        rungs[r] = r * r * r;
    bh_pack_ladder_build(&ladder, rungs, BH_PACK_RUNGS_MAX);
    for (int64_t value = -5; value < 1100000; value += 7)
        BH_CHECK_EQ("cubes", bh_pack_ladder_count(&ladder, value),
                    count_rungs(rungs, BH_PACK_RUNGS_MAX, value));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_are_exact),
    cmocka_unit_test(a_full_ladder_counts_too),
};
BH_TEST_MAIN(tests)
