/* The tournament: after every change the winner is what a scan finds. */
#include "engine/pack/pack_tree.h"

#include <stdlib.h>

#include "base/test.h"

static const uint32_t sizes[] = { 1, 2, 15, 16, 17, 255, 256, 257, 1213, 4097 };

static uint32_t
pack_tree_test_scan(const int32_t *scores, uint32_t count)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < count; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

static uint32_t
pack_tree_test_draw(uint64_t *state, uint32_t limit)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(*state >> 33) % limit;
}

static void
winners_equal_a_scan(void **state)
{
    for (size_t i = 0; i < BH_COUNT(sizes); i++) {
        uint32_t count = sizes[i];
        struct bh_pack_tree_plan plan = bh_pack_tree_plan(count);
        int32_t *tree = calloc(plan.scores, sizeof *tree);
        int32_t *scores = calloc(count, sizeof *scores);
        uint64_t random = i;

        bh_pack_tree_clear(&plan, tree);
        for (uint32_t leaf = 0; leaf < count; leaf++)
            scores[leaf] = tree[leaf] = (int32_t)pack_tree_test_draw(&random, 5) - 2;
        bh_pack_tree_build(&plan, tree);
        for (uint32_t step = 0; step < 3000; step++) {
            uint32_t leaf = pack_tree_test_draw(&random, 3) ? pack_tree_test_draw(&random, count)
                                                            : pack_tree_test_scan(scores, count);

            scores[leaf] = pack_tree_test_draw(&random, 4) ? (int32_t)pack_tree_test_draw(&random, 6) - 3
                                                           : BH_PACK_NO_CAPACITY;
            bh_pack_tree_set(&plan, tree, leaf, scores[leaf]);
            BH_CHECK_EQ("winner", bh_pack_tree_best(&plan, tree), pack_tree_test_scan(scores, count));
            BH_CHECK_EQ("top", bh_pack_tree_top(&plan, tree), scores[pack_tree_test_scan(scores, count)]);
        }
        free(scores);
        free(tree);
    }
    BH_CHECK_DONE();
}

static void
an_empty_tree_has_no_winner(void **state)
{
    struct bh_pack_tree_plan plan = bh_pack_tree_plan(300);
    int32_t *tree = calloc(plan.scores, sizeof *tree);

    bh_pack_tree_clear(&plan, tree);
    assert_int_equal(bh_pack_tree_best(&plan, tree), 0);
    assert_int_equal(tree[0], BH_PACK_NO_CAPACITY);
    bh_pack_tree_set(&plan, tree, 299, INT32_MAX);
    assert_int_equal(bh_pack_tree_best(&plan, tree), 299);
    free(tree);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(winners_equal_a_scan),
    cmocka_unit_test(an_empty_tree_has_no_winner),
};
BH_TEST_MAIN(tests)
