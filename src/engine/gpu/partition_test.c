#include "engine/gpu/partition.h"

#include "engine/step/fixture_test.h"

static uint32_t
partitions_in(const struct bh_fixture *fixture, enum bh_partition_state wanted)
{
    struct bh_partition_view view;
    uint32_t cursor = 0, count = 0;

    while (bh_view_next_partition(fixture->engine, &cursor, &view))
        count += view.state == wanted;
    return count;
}

static void
a_partition_goes_from_carving_to_leased_to_idle(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));

    assert_int_equal(partitions_in(fixture, BH_PARTITION_CARVING), 1);
    bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    assert_int_equal(partitions_in(fixture, BH_PARTITION_LEASED), 1);
    bh_fixture_finish_effects(fixture);
    bh_fixture_exit_job(fixture, job, 0);
    assert_int_equal(partitions_in(fixture, BH_PARTITION_IDLE), 1);
    bh_fixture_close(fixture);
}

static void
a_whole_gpu_destroys_all_idle_partitions_first(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 3));
    uint64_t last_destroy = 0, carve = 0;

    bh_fixture_exit_job(fixture, job, 0);
    bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 3);
    for (uint32_t i = 0; i < fixture->step.effect_count; i++) {
        if (fixture->step.effects[i].kind == BH_FX_DESTROY)
            last_destroy = fixture->step.effects[i].order;
        if (fixture->step.effects[i].kind == BH_FX_CARVE)
            carve = fixture->step.effects[i].order;
    }
    assert_true(last_destroy < carve);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(partitions_in(fixture, BH_PARTITION_CLEARING), 0);
    bh_fixture_close(fixture);
}

static void
a_carve_outlives_its_cancelled_job(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));

    assert_int_equal(bh_fixture_cancel(fixture, job), BH_OK);
    assert_int_equal(partitions_in(fixture, BH_PARTITION_CARVING), 1);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(partitions_in(fixture, BH_PARTITION_IDLE), 1);
    bh_fixture_close(fixture);
}

static void
what_cannot_be_destroyed_stands_in_the_way(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)), whole;

    bh_fixture_exit_job(fixture, job, 0);
    whole = bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1));
    assert_int_equal(fixture->effects[0].kind, BH_FX_DESTROY);
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED); /* destroy */
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED); /* so the carve fails, too */
    assert_int_equal(bh_fixture_state(fixture, whole), BH_JOB_PENDING);
    bh_fixture_tick(fixture, 6000000000ull);
    assert_int_equal(bh_fixture_state(fixture, whole), BH_JOB_PENDING);
    bh_fixture_node(fixture, 1, true); /* the node came back: try again */
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, whole), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
what_cannot_be_destroyed_is_tried_again_after_a_while(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)), whole;

    bh_fixture_exit_job(fixture, job, 0);
    whole = bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1));
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED); /* destroy */
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED); /* so the carve fails, too */
    bh_fixture_tick(fixture, 6000000000ull);
    assert_int_equal(bh_engine_next_tick_ns(fixture->engine),
                     fixture->now_ns - 6000000000ull + 30000000000ull);
    bh_fixture_tick(fixture, 24000000000ull);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    bh_fixture_tick(fixture, 30000000000ull);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, whole), BH_JOB_RUNNING);
    assert_true(bh_engine_next_tick_ns(fixture->engine) == UINT64_MAX);
    bh_fixture_close(fixture);
}

/* Memory of a partition that could not be scrubbed: no job gets its placement. */
static void
an_unclean_partition_is_kept_from_everybody(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1)), pause = 30000000000ull;

    bh_fixture_answer_next(fixture, BH_OUTCOME_UNCLEAN);
    assert_int_equal(partitions_in(fixture, BH_PARTITION_QUARANTINED), 1);
    bh_fixture_tick(fixture, 1000000000ull);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    for (uint32_t tries = 1; tries < BH_UNCLEAN_TRIES; tries++, pause *= 2) {
        bh_fixture_tick(fixture, pause);
        assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
        bh_fixture_answer_next(fixture, BH_OUTCOME_UNCLEAN);
    }
    bh_fixture_node(fixture, 1, true);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 0);
    bh_fixture_tick(fixture, 100 * pause);
    assert_int_equal(fixture->effect_count, 0); /* given up */
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    for (uint32_t cordoned = 2; cordoned-- > 0;) /* until an operator asks for it */
        bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { 1 },
                                                    .node = { 1 },
                                                    .model = BH_GPU_H100_80GB,
                                                    .managed = true,
                                                    .mig_capable = true,
                                                    .cordoned = cordoned });
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(partitions_in(fixture, BH_PARTITION_QUARANTINED), 0);
    bh_fixture_close(fixture);
}

static void
a_clean_end_frees_the_place_of_an_unclean_partition(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1));

    bh_fixture_answer_next(fixture, BH_OUTCOME_UNCLEAN);
    bh_fixture_tick(fixture, 31000000000ull);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
    bh_fixture_finish_effects(fixture);
    bh_fixture_tick(fixture, 31000000000ull);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    assert_int_equal(partitions_in(fixture, BH_PARTITION_QUARANTINED), 0);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_unclean_partition_is_kept_from_everybody),
    cmocka_unit_test(a_clean_end_frees_the_place_of_an_unclean_partition),
    cmocka_unit_test(a_partition_goes_from_carving_to_leased_to_idle),
    cmocka_unit_test(a_whole_gpu_destroys_all_idle_partitions_first),
    cmocka_unit_test(a_carve_outlives_its_cancelled_job),
    cmocka_unit_test(what_cannot_be_destroyed_stands_in_the_way),
    cmocka_unit_test(what_cannot_be_destroyed_is_tried_again_after_a_while),
};
BH_TEST_MAIN(tests)
