#include "engine/placement/placement.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

/* Jobs of SKUs (1: 1g.10gb, 2: 3g.40gb, 3: whole), one after the other on two GPUs:
 * where each comes to stand, as gpu * 100 + start. */
static void
partitions_go_where_least_is_broken_up(void **state)
{
    static const struct {
        const char *name;
        uint32_t skus[4], where[4];
        /* clang-format off */
    } cases[] = {
        { "small ones share a GPU", { 1, 1, 1 }, { 106, 104, 105 } },
        { "medium ones share a GPU", { 2, 2 }, { 104, 100 } },
        { "a third medium needs the next GPU", { 2, 2, 2 }, { 104, 100, 204 } },
        { "a whole one takes an empty GPU", { 1, 3 }, { 106, 200 } },
        { "small beside medium", { 2, 1 }, { 104, 100 } },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(2);

        for (size_t k = 0; k < 4 && cases[i].skus[k]; k++) {
            uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, cases[i].skus[k], 1));

            BH_CHECK_EQ(cases[i].name, bh_fixture_placement_of(fixture, job), cases[i].where[k]);
        }
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
a_gang_stands_on_one_node(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t gang, more;

    bh_fixture_h100s(fixture, 2, 11, 3);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    gang = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 3));
    assert_int_equal(bh_fixture_job(fixture, gang).node.v, 2);
    assert_int_equal(bh_fixture_job(fixture, gang).partition_count, 3);
    more = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 2));
    assert_int_equal(bh_fixture_state(fixture, more), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static void
seven_small_partitions_fill_a_gpu(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 7)), extra;
    struct bh_job_view view = bh_fixture_job(fixture, job);
    uint32_t starts = 0;

    for (uint32_t i = 0; i < view.partition_count; i++)
        starts |= 1u << view.partitions[i].start;
    assert_int_equal(starts, 0x7f);
    extra = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_state(fixture, extra), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

/* What makes a GPU take no new work. */
static void
some_gpus_get_nothing(void **state)
{
    static const struct {
        const char *name;
        struct bh_ev_gpu gpu;
        bool placed;
    } cases[] = {
        { "an ordinary one", { .managed = true, .mig_capable = true }, true },
        { "not managed", { .mig_capable = true }, false },
        { "cordoned", { .managed = true, .cordoned = true, .mig_capable = true }, false },
        { "fenced", { .managed = true, .fenced = true, .mig_capable = true }, false },
        { "without MIG", { .managed = true }, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(0);
        struct bh_ev_gpu gpu = cases[i].gpu;
        uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));

        gpu.gpu.v = 1;
        gpu.node.v = 1;
        gpu.model = BH_GPU_H100_80GB;
        bh_fixture_gpu(fixture, gpu);
        BH_CHECK_EQ(cases[i].name, bh_fixture_state(fixture, job),
                    cases[i].placed ? BH_JOB_STARTING : BH_JOB_PENDING);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
a_sku_is_kept_on_each_model_as_it_says(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(0);
    struct bh_event event = { .kind = BH_EV_SKU };
    const struct bh_profile *on_a30 = bh_profile_find(BH_GPU_A30_24GB, "1g.6gb");
    uint64_t job;

    event.u.sku = (struct bh_ev_sku){ .sku = { 1 }, .grade = BH_GRADE_C, .model_count = 2 };
    event.u.sku.models[0] =
        (struct bh_sku_model){ BH_GPU_H100_80GB, bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v };
    event.u.sku.models[1] = (struct bh_sku_model){ BH_GPU_A30_24GB, on_a30->id.v };
    bh_fixture_must_send(fixture, &event);
    bh_fixture_gpu(
        fixture,
        (struct bh_ev_gpu){
            .gpu = { 1 }, .node = { 1 }, .model = BH_GPU_A30_24GB, .managed = true, .mig_capable = true });
    job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_job(fixture, job).partitions[0].profile, on_a30->id.v);
    bh_fixture_close(fixture);
}

/* Two nodes alike; the first would be taken. */
static void
a_hot_node_comes_last_where_that_is_set(void **state)
{
    static const struct {
        const char *name;
        bool hotspots, hot;
        uint32_t node;
    } cases[] = {
        { "hot, and it matters", true, true, 2 },
        { "hot, and it does not", false, true, 1 },
        { "not hot", true, false, 1 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_event settings = { .kind = BH_EV_SETTINGS }, hot = { .kind = BH_EV_ADVICE };
        struct bh_fixture *fixture = bh_fixture_site(1);

        bh_fixture_h100s(fixture, 2, 2, 1);
        bh_view_settings(fixture->engine, &settings.u.settings);
        settings.u.settings.hotspots = cases[i].hotspots;
        bh_fixture_must_send(fixture, &settings);
        hot.u.advice.of = BH_ADVICE_NODE;
        hot.u.advice.node.v = 1;
        hot.u.advice.hot = cases[i].hot;
        bh_fixture_must_send(fixture, &hot);
        BH_CHECK_EQ(
            cases[i].name,
            bh_fixture_job(fixture, bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1)))
                .node.v,
            cases[i].node);
        bh_fixture_submit_running(fixture,
                                  bh_fixture_submission(21, 3, 1)); /* and the other one after that */
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(partitions_go_where_least_is_broken_up),
    cmocka_unit_test(a_gang_stands_on_one_node),
    cmocka_unit_test(seven_small_partitions_fill_a_gpu),
    cmocka_unit_test(some_gpus_get_nothing),
    cmocka_unit_test(a_hot_node_comes_last_where_that_is_set),
    cmocka_unit_test(a_sku_is_kept_on_each_model_as_it_says),
};
BH_TEST_MAIN(tests)
