#include "engine/transition.h"

#include "engine/story_test.h"

static const struct bh_ev_gpu the_gpu = { .gpu = { 1 }, .node = { 1 },
                                          .model = BH_GPU_H100_80GB, .managed = true,
                                          .mig_capable = true };

static void
a_node_that_goes_keeps_its_jobs_and_gets_no_more(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t running = bh_story_run(story, bh_story_wants(21, 1, 1)), waiting;

    bh_story_node(story, 1, false);
    assert_int_equal(bh_story_state(story, running), BH_JOB_RUNNING);
    waiting = bh_story_submit(story, bh_story_wants(21, 1, 1));
    assert_int_equal(bh_story_why(story, waiting).code, BH_REASON_NODE_DOWN);
    bh_story_node(story, 1, true);
    assert_int_equal(bh_story_state(story, waiting), BH_JOB_STARTING);
    bh_story_close(story);
}

static void
a_fenced_gpu_ends_its_leases(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_gpu fenced = the_gpu;
    struct bh_ev_submit never = bh_story_wants(21, 1, 1);
    uint64_t again = bh_story_run(story, never), failed;

    never.contract = BH_CONTRACT_NEVER;
    failed = bh_story_run(story, never);
    fenced.fenced = true;
    bh_story_gpu(story, fenced);
    assert_int_equal(bh_story_effects(story, BH_FX_STOP), 2);
    bh_story_next(story, BH_OUTCOME_OK);
    bh_story_next(story, BH_OUTCOME_OK);
    assert_int_equal(bh_story_state(story, again), BH_JOB_PENDING);
    assert_int_equal(bh_story_state(story, failed), BH_JOB_FAILED);
    assert_int_equal(bh_story_job(story, failed).cause, BH_END_GPU_LOST);
    bh_story_gpu(story, the_gpu);
    assert_int_equal(bh_story_state(story, again), BH_JOB_STARTING);
    bh_story_close(story);
}

static void
a_cordoned_gpu_keeps_its_jobs(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_gpu cordoned = the_gpu;
    uint64_t running = bh_story_run(story, bh_story_wants(21, 1, 1)), waiting;

    cordoned.cordoned = true;
    bh_story_gpu(story, cordoned);
    waiting = bh_story_submit(story, bh_story_wants(21, 1, 1));
    assert_int_equal(bh_story_state(story, running), BH_JOB_RUNNING);
    assert_int_equal(bh_story_state(story, waiting), BH_JOB_PENDING);
    bh_story_close(story);
}

static void
a_missing_piece_ends_its_lease_and_is_carved_again(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_event gone = { .kind = BH_EV_PIECE_GONE };
    uint64_t job = bh_story_run(story, bh_story_wants(21, 1, 1));

    gone.u.piece.partition = bh_story_job(story, job).pieces[0].partition;
    bh_story_must(story, &gone);
    assert_int_equal(bh_story_state(story, job), BH_JOB_STOPPING);
    assert_int_equal(bh_story_send(story, &gone), BH_CONFLICT);
    bh_story_next(story, BH_OUTCOME_OK);
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 1);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    assert_int_equal(bh_story_send(story, &gone), BH_NOT_FOUND);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_that_goes_keeps_its_jobs_and_gets_no_more),
    cmocka_unit_test(a_fenced_gpu_ends_its_leases),
    cmocka_unit_test(a_cordoned_gpu_keeps_its_jobs),
    cmocka_unit_test(a_missing_piece_ends_its_lease_and_is_carved_again),
};
BH_TEST_MAIN(tests)
