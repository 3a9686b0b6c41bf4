#include "engine/step/transition.h"

#include "engine/step/fixture_test.h"

static const struct bh_ev_gpu the_gpu = {
    .gpu = { 1 }, .node = { 1 }, .model = BH_GPU_H100_80GB, .managed = true, .mig_capable = true
};

static void
a_node_that_goes_keeps_its_jobs_and_gets_no_more(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t running = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)), waiting;

    bh_fixture_node(fixture, 1, false);
    assert_int_equal(bh_fixture_state(fixture, running), BH_JOB_RUNNING);
    waiting = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_why(fixture, waiting).code, BH_REASON_NODE_DOWN);
    bh_fixture_node(fixture, 1, true);
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

static void
a_fenced_gpu_ends_its_leases(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_gpu fenced = the_gpu;
    struct bh_ev_submit never = bh_fixture_submission(21, 1, 1);
    uint64_t again = bh_fixture_submit_running(fixture, never), failed;

    never.contract = BH_CONTRACT_NEVER;
    failed = bh_fixture_submit_running(fixture, never);
    fenced.fenced = true;
    bh_fixture_gpu(fixture, fenced);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_STOP), 2);
    bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    assert_int_equal(bh_fixture_state(fixture, again), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_state(fixture, failed), BH_JOB_FAILED);
    assert_int_equal(bh_fixture_job(fixture, failed).cause, BH_END_GPU_LOST);
    bh_fixture_gpu(fixture, the_gpu);
    assert_int_equal(bh_fixture_state(fixture, again), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

static void
a_cordoned_gpu_keeps_its_jobs(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_gpu cordoned = the_gpu;
    uint64_t running = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)), waiting;

    cordoned.cordoned = true;
    bh_fixture_gpu(fixture, cordoned);
    waiting = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_state(fixture, running), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static void
a_missing_partition_ends_its_lease_and_is_carved_again(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event gone = { .kind = BH_EV_PARTITION_GONE };
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));

    gone.u.partition.partition = bh_fixture_job(fixture, job).partitions[0].partition;
    bh_fixture_must_send(fixture, &gone);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STOPPING);
    assert_int_equal(bh_fixture_send(fixture, &gone), BH_CONFLICT);
    bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 1);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_send(fixture, &gone), BH_NOT_FOUND);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_that_goes_keeps_its_jobs_and_gets_no_more),
    cmocka_unit_test(a_fenced_gpu_ends_its_leases),
    cmocka_unit_test(a_cordoned_gpu_keeps_its_jobs),
    cmocka_unit_test(a_missing_partition_ends_its_lease_and_is_carved_again),
};
BH_TEST_MAIN(tests)
