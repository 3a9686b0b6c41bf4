#include "engine/step/decide.h"

#include "engine/step/fixture_test.h"

static void
a_time_limit_strikes_at_its_tick(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit submit = bh_fixture_submission(21, 1, 1);
    uint64_t job, started_ns;

    submit.time_limit_ns = 1000;
    job = bh_fixture_submit_running(fixture, submit);
    started_ns = bh_fixture_job(fixture, job).started_ns;
    assert_int_equal(bh_engine_next_tick_ns(fixture->engine), started_ns + 1000);
    bh_fixture_tick(fixture, 999);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    bh_fixture_tick(fixture, 1);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STOPPING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    assert_int_equal(bh_fixture_job(fixture, job).cause, BH_END_TIME_LIMIT);
    bh_fixture_close(fixture);
}

static void
time_suspended_does_not_count(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit submit = bh_fixture_submission(21, 3, 1), urgent = submit;
    uint64_t job, high;

    submit.time_limit_ns = 1000;
    submit.contract = BH_CONTRACT_SUSPEND;
    job = bh_fixture_submit_running(fixture, submit);
    fixture->now_ns += 400;
    urgent.priority = BH_PRIORITY_URGENT;
    high = bh_fixture_submit_running(fixture, urgent);
    bh_fixture_tick(fixture, 100000);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_SUSPENDED);
    bh_fixture_exit_job(fixture, high, 0);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_engine_next_tick_ns(fixture->engine), fixture->now_ns + 600);
    bh_fixture_tick(fixture, 600);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STOPPING);
    bh_fixture_close(fixture);
}

static void
a_full_step_goes_on_with_the_next(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event event = { .kind = BH_EV_TENANT_REMOVE };
    uint32_t steps = 1, ended = 0;

    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1));
    for (uint32_t i = 0; i < 2 * BH_DECISIONS_MAX + 22; i++)
        bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    event.u.tenant.tenant.v = 21;
    bh_fixture_must_send(fixture, &event);
    ended += bh_fixture_effects(fixture, BH_FX_JOB);
    assert_true(fixture->step.more);
    assert_int_equal(fixture->step.decision_count, BH_DECISIONS_MAX);
    assert_int_equal(bh_engine_next_tick_ns(fixture->engine), fixture->now_ns);
    while (fixture->step.more) {
        bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_TICK });
        ended += bh_fixture_effects(fixture, BH_FX_JOB);
        steps++;
    }
    assert_int_equal(steps, 3);
    assert_int_equal(ended, 2 * BH_DECISIONS_MAX + 22);
    bh_fixture_close(fixture);
}

static void
nothing_to_do_needs_no_tick(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    assert_true(bh_engine_next_tick_ns(fixture->engine) == UINT64_MAX);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_time_limit_strikes_at_its_tick),
    cmocka_unit_test(time_suspended_does_not_count),
    cmocka_unit_test(a_full_step_goes_on_with_the_next),
    cmocka_unit_test(nothing_to_do_needs_no_tick),
};
BH_TEST_MAIN(tests)
