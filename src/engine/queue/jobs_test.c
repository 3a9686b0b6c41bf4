#include "engine/queue/jobs.h"

#include "engine/step/fixture_test.h"

static void
a_held_job_waits_for_its_release(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit submit = bh_fixture_submission(21, 1, 1);
    struct bh_event release = { .kind = BH_EV_RELEASE };
    uint64_t job;

    submit.hold = true;
    job = bh_fixture_submit(fixture, submit);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_HELD);
    release.u.job.job.v = job;
    bh_fixture_must_send(fixture, &release);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    assert_int_equal(bh_fixture_send(fixture, &release), BH_CONFLICT);
    bh_fixture_close(fixture);
}

static void
an_ended_job_is_seen_until_the_next_event(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    struct bh_job_view view;

    fixture->now_ns += 50;
    bh_fixture_exit_job(fixture, job, 3);
    view = bh_fixture_job(fixture, job);
    assert_int_equal(view.state, BH_JOB_FAILED);
    assert_int_equal(view.cause, BH_END_EXITED);
    assert_int_equal(view.exit_status, 3);
    assert_int_equal(view.ended_ns, fixture->now_ns);
    assert_int_equal(bh_fixture_cancel(fixture, job), BH_CONFLICT);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED); /* a refusal changes nothing */
    bh_fixture_tick(fixture, 1);
    assert_false(bh_view_job(fixture->engine, (bh_job_id){ job }, &view));
    bh_fixture_close(fixture);
}

static void
a_job_goes_back_to_its_old_place(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event lost = { .kind = BH_EV_ENDED };
    uint64_t first = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    uint64_t second = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));

    lost.u.ended =
        (struct bh_ev_ended){ .lease = bh_fixture_job(fixture, first).lease, .cause = BH_END_NODE_LOST };
    bh_fixture_must_send(fixture, &lost);
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_STARTING);
    assert_int_equal(bh_fixture_job(fixture, first).restarts, 1);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

/* A job that may not have what it mounts is ended as a cancelled one is, but has failed. */
static void
a_job_without_its_dataset_fails(void **state)
{
    enum { WAITS, STARTS, RUNS, CANCELLED, PHASES };

    for (int phase = WAITS; phase < PHASES; phase++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_ev_submit submit = bh_fixture_submission(21, 1, 1);
        struct bh_event end = { .kind = BH_EV_CANCEL, .u.job.cause = BH_END_DATASET };
        uint64_t job;

        submit.hold = phase == WAITS;
        job =
            phase <= STARTS ? bh_fixture_submit(fixture, submit) : bh_fixture_submit_running(fixture, submit);
        if (phase == CANCELLED)
            assert_int_equal(bh_fixture_cancel(fixture, job), BH_OK);
        end.u.job.job.v = job;
        bh_fixture_must_send(fixture, &end);
        while (bh_fixture_state(fixture, job) < BH_JOB_COMPLETED)
            assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_OK));
        assert_int_equal(bh_fixture_state(fixture, job),
                         phase == CANCELLED ? BH_JOB_CANCELLED : BH_JOB_FAILED);
        assert_int_equal(bh_fixture_job(fixture, job).cause,
                         phase == CANCELLED ? BH_END_CANCELLED : BH_END_DATASET);
        bh_fixture_close(fixture);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_without_its_dataset_fails),
    cmocka_unit_test(a_held_job_waits_for_its_release),
    cmocka_unit_test(an_ended_job_is_seen_until_the_next_event),
    cmocka_unit_test(a_job_goes_back_to_its_old_place),
};
BH_TEST_MAIN(tests)
