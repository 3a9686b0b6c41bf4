#include "engine/gpu/pool.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

static const struct pool *
h100s(const struct bh_fixture *fixture)
{
    return &fixture->engine->core.pools[fixture->engine->core.pool_of[BH_GPU_H100_80GB] - 1];
}

/* The sums are those of the GPUs as they stand, whatever led there. */
static void
sums_follow_the_gpus(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(3);
    uint64_t small = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)), whole;
    struct bh_mig_pool sum = { 0 };
    const struct bh_mig *figures;
    struct bh_mig_prices prices;

    whole = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 2, 1));
    bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { 3 },
                                                .node = { 1 },
                                                .model = BH_GPU_H100_80GB,
                                                .managed = true,
                                                .cordoned = true,
                                                .mig_capable = true });
    bh_fixture_exit_job(fixture, small, 0);
    bh_fixture_exit_job(fixture, whole, 0);
    figures = bh_pool_prices(fixture->engine, BH_GPU_H100_80GB, &prices);
    assert_non_null(figures);
    for (uint32_t slot = 0; bh_slot_next(fixture->engine, TABLE_GPU, &slot);)
        if (gpu_at(fixture->engine, slot)->counted & GPU_OFFERED)
            bh_mig_pool_add(figures, &sum, &gpu_at(fixture->engine, slot)->occupancy);
    assert_int_equal(sum.gpus, 2);
    assert_memory_equal(&sum, &h100s(fixture)->capacity, sizeof sum);
    bh_fixture_close(fixture);
}

static void
demand_is_what_was_asked_for_lately(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint32_t small = 0, sum = 0;

    for (uint32_t i = 0; i < 5; i++)
        bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 3));
    bh_fixture_submit(fixture, bh_fixture_submission(21, 2, 1));
    assert_int_equal(h100s(fixture)->asked_sum, 16);
    for (uint32_t i = 0; i < 300; i++)
        assert_int_equal(
            bh_fixture_cancel(fixture, bh_fixture_submit(fixture, bh_fixture_submission(21, 2, 1))), BH_OK);
    for (uint32_t i = 0; i < 700; i++)
        bh_fixture_cancel(fixture, bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 6)));
    for (uint32_t i = 0; i < BH_MIG_SHAPES_MAX; i++) {
        small = h100s(fixture)->asked[i] > small ? h100s(fixture)->asked[i] : small;
        sum += h100s(fixture)->asked[i];
    }
    assert_int_equal(sum, h100s(fixture)->asked_sum);
    assert_true(sum < 4096);
    assert_true(small * 100 > sum * 85);
    bh_fixture_close(fixture);
}

/* Of each shape the first profile of the table: those with media engines have the same. */
static void
demand_is_shown_by_profile(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_demand_view asked;
    uint32_t sum = 0;

    bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 3));
    bh_fixture_submit(fixture, bh_fixture_submission(21, 2, 1));
    assert_true(bh_view_demand(fixture->engine, BH_GPU_H100_80GB, &asked));
    for (uint32_t i = 0; i < asked.shapes; i++) {
        const char *name = bh_profile_get((bh_profile_id){ asked.profiles[i] })->name;
        uint32_t wanted = strcmp(name, "1g.10gb") == 0 ? 3 : strcmp(name, "3g.40gb") == 0;

        BH_CHECK_EQ(name, asked.partitions[i], wanted);
        sum += asked.partitions[i];
    }
    BH_CHECK_EQ("all", sum, 4);
    BH_CHECK("not of a model that is not there", !bh_view_demand(fixture->engine, BH_GPU_A30_24GB, &asked));
    BH_CHECK("nor of none at all", !bh_view_demand(fixture->engine, 4000, &asked));
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

static void
models_without_figures_have_no_prices(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_mig_prices prices;

    assert_null(bh_pool_prices(fixture->engine, BH_GPU_A30_24GB, &prices));
    assert_null(bh_pool_prices(fixture->engine, BH_GPU_MODEL_NONE, &prices));
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_follow_the_gpus),
    cmocka_unit_test(demand_is_what_was_asked_for_lately),
    cmocka_unit_test(demand_is_shown_by_profile),
    cmocka_unit_test(models_without_figures_have_no_prices),
};
BH_TEST_MAIN(tests)
