#include "engine/decide.h"

#include "engine/story_test.h"

static void
a_time_limit_strikes_at_its_tick(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_submit submit = bh_story_wants(21, 1, 1);
    uint64_t job, started_ns;

    submit.time_limit_ns = 1000;
    job = bh_story_run(story, submit);
    started_ns = bh_story_job(story, job).started_ns;
    assert_int_equal(bh_engine_next_tick_ns(story->engine), started_ns + 1000);
    bh_story_tick(story, 999);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    bh_story_tick(story, 1);
    assert_int_equal(bh_story_state(story, job), BH_JOB_STOPPING);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, job), BH_JOB_FAILED);
    assert_int_equal(bh_story_job(story, job).cause, BH_END_TIME_LIMIT);
    bh_story_close(story);
}

static void
time_suspended_does_not_count(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_submit submit = bh_story_wants(21, 3, 1), urgent = submit;
    uint64_t job, high;

    submit.time_limit_ns = 1000;
    submit.contract = BH_CONTRACT_SUSPEND;
    job = bh_story_run(story, submit);
    story->now_ns += 400;
    urgent.priority = BH_PRIORITY_URGENT;
    high = bh_story_run(story, urgent);
    bh_story_tick(story, 100000);
    assert_int_equal(bh_story_state(story, job), BH_JOB_SUSPENDED);
    bh_story_exit(story, high, 0);
    bh_story_settle(story);
    assert_int_equal(bh_engine_next_tick_ns(story->engine), story->now_ns + 600);
    bh_story_tick(story, 600);
    assert_int_equal(bh_story_state(story, job), BH_JOB_STOPPING);
    bh_story_close(story);
}

static void
a_full_step_goes_on_with_the_next(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_event event = { .kind = BH_EV_TENANT_REMOVE };
    uint32_t steps = 1, ended = 0;

    bh_story_run(story, bh_story_wants(31, 3, 1));
    for (uint32_t i = 0; i < 2 * BH_DECISIONS_MAX + 22; i++)
        bh_story_submit(story, bh_story_wants(21, 3, 1));
    event.u.tenant.tenant.v = 21;
    bh_story_must(story, &event);
    ended += bh_story_effects(story, BH_FX_JOB);
    assert_true(story->step.more);
    assert_int_equal(story->step.decision_count, BH_DECISIONS_MAX);
    assert_int_equal(bh_engine_next_tick_ns(story->engine), story->now_ns);
    while (story->step.more) {
        bh_story_must(story, &(struct bh_event){ .kind = BH_EV_TICK });
        ended += bh_story_effects(story, BH_FX_JOB);
        steps++;
    }
    assert_int_equal(steps, 3);
    assert_int_equal(ended, 2 * BH_DECISIONS_MAX + 22);
    bh_story_close(story);
}

static void
nothing_to_do_needs_no_tick(void **state)
{
    struct bh_story *story = bh_story_site(1);

    bh_story_run(story, bh_story_wants(21, 1, 1));
    assert_true(bh_engine_next_tick_ns(story->engine) == UINT64_MAX);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_time_limit_strikes_at_its_tick),
    cmocka_unit_test(time_suspended_does_not_count),
    cmocka_unit_test(a_full_step_goes_on_with_the_next),
    cmocka_unit_test(nothing_to_do_needs_no_tick),
};
BH_TEST_MAIN(tests)
