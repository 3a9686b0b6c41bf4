/* Lending, pool sizes and hot nodes: tables of bounds and what follows from them. */
#include "engine/forecast/headroom.h"

#include "base/test.h"
#include "model/quantity.h"

enum { GPU = BH_GPU_PARTS };

static struct bh_forecast_bound
bound_of(uint32_t level, uint32_t value, bool firm)
{
    return (struct bh_forecast_bound){
        .value = value, .level = level, .change = (int64_t)value - level, .firm = firm
    };
}

static const struct {
    const char *name;
    uint64_t guarantee;
    uint32_t bound;
    bool firm;
    uint64_t lent;
} loans[] = {
    { "what the bound leaves", 8 * GPU, 5 * GPU, true, 3 * GPU },
    { "parts of a GPU", 8 * GPU, 5 * GPU + 1, true, 3 * GPU - 1 },
    { "nothing at the guarantee", 8 * GPU, 8 * GPU, true, 0 },
    { "nothing above it", 8 * GPU, 9 * GPU, true, 0 },
    { "all of it from an idle tenant", 8 * GPU, 0, true, 8 * GPU },
    { "nothing on too short a history", 8 * GPU, 5 * GPU, false, 0 },
    { "no guarantee", 0, 0, true, 0 },
    { "a guarantee beyond any bound", UINT64_MAX, BH_FORECAST_VALUE_MAX, true,
      UINT64_MAX - BH_FORECAST_VALUE_MAX },
};

static void
idle_guarantees_are_lent(void **state)
{
    for (size_t i = 0; i < BH_COUNT(loans); i++) {
        struct bh_forecast_bound bound = bound_of(0, loans[i].bound, loans[i].firm);

        BH_CHECK_EQ(loans[i].name, bh_headroom_lend(loans[i].guarantee, &bound), loans[i].lent);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    uint32_t need, later; /* parts */
    bool firm, later_firm;
    uint32_t capacity, least, most, grain, reserve;
    enum bh_headroom_move move;
    uint32_t gpus, wanted, wanted_later;
} pools[] = {
    { "just right", 16 * GPU, 16 * GPU, 1, 1, 16, 0, 64, 8, 0, BH_HEADROOM_KEEP, 0, 16, 16 },
    { "one part more is a node more", 16 * GPU + 1, 0, 1, 1, 16, 0, 64, 8, 0, BH_HEADROOM_GROW, 8, 17, 0 },
    { "single GPUs", 20 * GPU, 0, 1, 1, 16, 0, 64, 1, 0, BH_HEADROOM_GROW, 4, 20, 0 },
    { "the reserve counts", 16 * GPU, 0, 1, 1, 16, 0, 64, 1, 250, BH_HEADROOM_GROW, 4, 20, 0 },
    { "no more than most", 60 * GPU, 0, 1, 1, 16, 0, 32, 8, 0, BH_HEADROOM_GROW, 16, 60, 0 },
    { "no part of a grain below most", 60 * GPU, 0, 1, 1, 16, 0, 31, 8, 0, BH_HEADROOM_GROW, 8, 60, 0 },
    { "at most already", 60 * GPU, 60 * GPU, 1, 1, 32, 0, 32, 8, 0, BH_HEADROOM_KEEP, 0, 60, 60 },
    { "grow on a short history too", 20 * GPU, 0, 0, 0, 16, 0, 64, 1, 0, BH_HEADROOM_GROW, 4, 20, 0 },
    { "grow to least", 0, 0, 1, 1, 2, 8, 64, 1, 0, BH_HEADROOM_GROW, 6, 0, 0 },
    { "shrink by whole grains", 3 * GPU, 9 * GPU, 1, 1, 32, 0, 64, 8, 0, BH_HEADROOM_SHRINK, 16, 3, 9 },
    { "the day needs what the hour does not", 3 * GPU, 30 * GPU, 1, 1, 32, 0, 64, 8, 0, BH_HEADROOM_KEEP, 0,
      3, 30 },
    { "the hour needs what the day does not", 30 * GPU, 3 * GPU, 1, 1, 32, 0, 64, 8, 0, BH_HEADROOM_KEEP, 0,
      30, 3 },
    { "least stays", 0, 0, 1, 1, 32, 20, 64, 1, 0, BH_HEADROOM_SHRINK, 12, 0, 0 },
    { "no shrinking on a short history", 0, 0, 1, 0, 32, 0, 64, 1, 0, BH_HEADROOM_KEEP, 0, 0, 0 },
    { "the largest bound", BH_FORECAST_VALUE_MAX, BH_FORECAST_VALUE_MAX, 1, 1, 0, 0, 1 << 20, 8, 10000,
      BH_HEADROOM_GROW, 1 << 20, 11248724, 11248724 },
};

static void
pools_grow_and_shrink(void **state)
{
    for (size_t i = 0; i < BH_COUNT(pools); i++) {
        struct bh_forecast_bound need = bound_of(0, pools[i].need, pools[i].firm);
        struct bh_forecast_bound later = bound_of(0, pools[i].later, pools[i].later_firm);
        struct bh_headroom_pool pool = {
            .need = &need,
            .later = &later,
            .capacity = pools[i].capacity,
            .least = pools[i].least,
            .most = pools[i].most,
            .grain = pools[i].grain,
            .reserve_permille = pools[i].reserve,
        };
        struct bh_headroom_scale scale = bh_headroom_propose(&pool);

        BH_CHECK_EQ(pools[i].name, scale.move, pools[i].move);
        BH_CHECK_EQ(pools[i].name, scale.gpus, pools[i].gpus);
        BH_CHECK_EQ(pools[i].name, scale.wanted, pools[i].wanted);
        BH_CHECK_EQ(pools[i].name, scale.wanted_later, pools[i].wanted_later);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    uint32_t level, value;
    uint64_t capacity;
    uint32_t mark;
    bool hot;
    uint32_t level_permille, projected_permille;
} nodes[] = {
    { "cool and staying so", 2 * GPU, 3 * GPU, 8 * GPU, 900, false, 250, 375 },
    { "cool now, hot soon", 5 * GPU, 8 * GPU, 8 * GPU, 900, true, 625, 1000 },
    { "hot now, cooling", 8 * GPU, 4 * GPU, 8 * GPU, 900, false, 1000, 500 },
    { "at the mark is hot", 0, 9 * GPU, 10 * GPU, 900, true, 0, 900 },
    { "just below is not", 0, 9 * GPU - 1, 10 * GPU, 900, false, 0, 899 },
    { "wanted more than there is", 0, 20 * GPU, 10 * GPU, 1500, true, 0, 2000 },
    { "a tiny node", BH_FORECAST_VALUE_MAX, BH_FORECAST_VALUE_MAX, 1, 900, true, UINT32_MAX, UINT32_MAX },
};

static void
hot_nodes_are_seen_early(void **state)
{
    for (size_t i = 0; i < BH_COUNT(nodes); i++) {
        struct bh_forecast_bound use = bound_of(nodes[i].level, nodes[i].value, true);
        struct bh_headroom_heat heat = bh_headroom_test_node(&use, nodes[i].capacity, nodes[i].mark);

        BH_CHECK_EQ(nodes[i].name, heat.hot, nodes[i].hot);
        BH_CHECK_EQ(nodes[i].name, heat.level_permille, nodes[i].level_permille);
        BH_CHECK_EQ(nodes[i].name, heat.projected_permille, nodes[i].projected_permille);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(idle_guarantees_are_lent),
    cmocka_unit_test(pools_grow_and_shrink),
    cmocka_unit_test(hot_nodes_are_seen_early),
};

BH_TEST_MAIN(tests)
