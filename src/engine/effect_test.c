#include "engine/effect.h"

#include "engine/story_test.h"

static void
effects_are_numbered_by_record_and_position(void **state)
{
    struct bh_story *story = bh_story_site(1);

    bh_story_submit(story, bh_story_wants(21, 1, 2));
    assert_true(story->step.effect_count >= 3);
    for (uint32_t i = 0; i < story->step.effect_count; i++)
        assert_int_equal(story->step.effects[i].order, (story->seq << BH_ORDER_BITS) + i);
    bh_story_close(story);
}

static void
a_job_is_told_of_once_as_it_is_in_the_end(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, bh_story_wants(21, 1, 1));

    assert_int_equal(bh_story_effects(story, BH_FX_JOB), 1); /* pending, then starting */
    assert_int_equal(story->step.effects[0].job.v, job);
    assert_int_equal(story->step.effects[0].state, BH_JOB_STARTING);
    bh_story_settle(story);
    bh_story_exit(story, job, 7);
    assert_int_equal(story->step.effects[0].state, BH_JOB_FAILED);
    assert_int_equal(story->step.effects[0].cause, BH_END_EXITED);
    assert_int_equal(story->step.effects[0].exit_status, 7);
    assert_int_equal(story->step.effects[0].lease.v, 1);
    assert_int_equal(story->step.effects[0].node.v, 1);
    bh_story_close(story);
}

static void
what_is_not_answered_is_outstanding_in_order(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_effect effects[8];
    bh_node_id node = { 1 };

    bh_story_run(story, bh_story_wants(21, 1, 1));
    assert_int_equal(bh_engine_outstanding(story->engine, node, effects, 8), 0);
    bh_story_submit(story, bh_story_wants(21, 1, 2));
    bh_story_submit(story, bh_story_wants(31, 2, 1));
    assert_int_equal(bh_engine_outstanding(story->engine, node, effects, 8), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(effects[i].order, story->effects[i].order);
        assert_int_equal(effects[i].kind, BH_FX_CARVE);
        assert_int_equal(effects[i].piece.partition.v, story->effects[i].piece.partition.v);
    }
    assert_int_equal(bh_engine_outstanding(story->engine, node, effects, 2), 2);
    assert_int_equal(effects[0].order, story->effects[0].order);
    assert_int_equal(bh_engine_outstanding(story->engine, (bh_node_id){ 2 }, effects, 8), 0);
    bh_story_close(story);
}

static void
a_stop_carries_the_grace(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_submit submit = bh_story_wants(21, 1, 1);
    uint64_t job;

    submit.grace_ns = 12345;
    job = bh_story_run(story, submit);
    assert_int_equal(bh_story_cancel(story, job), BH_OK);
    assert_int_equal(story->effects[0].kind, BH_FX_STOP);
    assert_int_equal(story->effects[0].grace_ns, 12345);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(effects_are_numbered_by_record_and_position),
    cmocka_unit_test(a_job_is_told_of_once_as_it_is_in_the_end),
    cmocka_unit_test(what_is_not_answered_is_outstanding_in_order),
    cmocka_unit_test(a_stop_carries_the_grace),
};
BH_TEST_MAIN(tests)
