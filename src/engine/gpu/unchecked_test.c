#include "engine/gpu/unchecked.h"

#include "engine/step/fixture_start_test.h"

#define AVOIDED_NS UINT64_C(5000000000)

/* Two nodes with a GPU each, and the departments 2 and 3 with a project of their own. */
static struct bh_fixture *
two_nodes(void)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    bh_fixture_h100s(fixture, 2, 2, 1);
    return fixture;
}

static bool
is_unchecked(const struct bh_fixture *fixture, uint32_t node)
{
    struct bh_host_view view;

    assert_true(bh_view_host(fixture->engine, (bh_node_id){ node }, &view));
    return view.unchecked;
}

static void
unchecked_test_check(struct bh_fixture *fixture, uint32_t node, enum bh_outcome_kind outcome)
{
    bh_fixture_must_send(fixture,
                         &(struct bh_event){ .kind = BH_EV_CHECKED, .u.checked = { { node }, outcome } });
}

static void
a_failed_start_is_tried_elsewhere_once(void **state)
{
    struct bh_fixture *fixture = two_nodes();
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    uint32_t first = bh_fixture_placement_of(fixture, job);

    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    assert_true(bh_fixture_placement_of(fixture, job) != first);
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    assert_int_equal(bh_fixture_job(fixture, job).cause, BH_END_START_FAILED);
    bh_fixture_close(fixture);
}

/* What one node does not allow another may; it is never held against either. */
static void
what_is_refused_is_tried_on_other_nodes_only(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));

    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .refused = true });
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    assert_int_equal(bh_fixture_job(fixture, job).cause, BH_END_START_FAILED);
    bh_fixture_h100s(fixture, 2, 2, 1);
    for (int i = 0; i < 3; i++) {
        job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
        bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .refused = true });
        assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
        bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .refused = true });
        assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    }
    assert_false(is_unchecked(fixture, 1) || is_unchecked(fixture, 2));
    bh_fixture_close(fixture);
}

/* A record of before does not say that it is tried again: its job stays failed when it is replayed. */
static void
an_old_record_means_what_it_meant(void **state)
{
    struct bh_fixture *fixture = two_nodes();
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));

    bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    bh_fixture_close(fixture);
}

static void
on_the_only_node_it_waits_a_while(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1)), other;

    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    other = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    bh_fixture_finish_effects(fixture);
    bh_fixture_exit_job(fixture, other, 0); /* what frees up does not bring it back sooner */
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    bh_fixture_tick(fixture, AVOIDED_NS);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* The queue of a site that one tenant uses is not swallowed by a node that starts nothing. */
static void
a_node_on_which_two_jobs_fail_gets_no_more(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t jobs[5];

    for (int i = 0; i < 5; i++)
        jobs[i] = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_false(is_unchecked(fixture, 1));
    bh_fixture_tick(fixture, AVOIDED_NS);
    bh_fixture_fail_start(fixture,
                          (struct bh_ev_lease){ .rc = 0 }); /* the same, again: one job proves nothing */
    assert_int_equal(bh_fixture_state(fixture, jobs[0]), BH_JOB_FAILED);
    assert_false(is_unchecked(fixture, 1));
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_true(is_unchecked(fixture, 1));
    bh_fixture_tick(fixture, 100 * AVOIDED_NS);
    for (int i = 1; i < 5; i++) {
        assert_int_equal(bh_fixture_state(fixture, jobs[i]), BH_JOB_PENDING);
        assert_int_equal(bh_fixture_why(fixture, jobs[i]).code,
                         i == 1 ? BH_REASON_UNCHECKED : bh_fixture_why(fixture, jobs[i]).code);
    }
    unchecked_test_check(fixture, 1, BH_OUTCOME_FAILED);
    assert_true(is_unchecked(fixture, 1));
    unchecked_test_check(fixture, 1, BH_OUTCOME_OK);
    assert_false(is_unchecked(fixture, 1));
    assert_int_equal(bh_fixture_state(fixture, jobs[1]), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

/* What a tenant's own jobs do is not held against a node that others use. */
static void
one_tenant_alone_takes_no_node_from_others(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t other = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1));

    for (int i = 0; i < 6; i++) {
        bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
        bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
        bh_fixture_tick(fixture, AVOIDED_NS);
        bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
        assert_false(is_unchecked(fixture, 1));
    }
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
two_tenants_have_it_checked_and_once_a_minute_at_most(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1));
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_true(is_unchecked(fixture, 1));
    unchecked_test_check(fixture, 1, BH_OUTCOME_OK);
    for (int i = 0; i < 2; i++) { /* both once more */
        bh_fixture_tick(fixture, AVOIDED_NS);
        bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
        assert_false(is_unchecked(fixture, 1));
    }
    bh_fixture_tick(fixture, BH_UNCHECKED_REST_NS);
    bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_true(is_unchecked(fixture, 1)); /* no start came well since */
    bh_fixture_close(fixture);
}

static void
a_start_that_comes_well_begins_the_count_anew(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job;

    bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    bh_fixture_tick(fixture, AVOIDED_NS);
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    job = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1));
    bh_fixture_exit_job(fixture, job, 0);
    bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1));
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_false(is_unchecked(fixture, 1));
    bh_fixture_close(fixture);
}

static void
an_operator_may_skip_the_check(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    unchecked_test_check(fixture, 1, BH_OUTCOME_FAILED);
    assert_true(is_unchecked(fixture, 1));
    bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_CORDON,
                                                      .u.cordon = { .node = { 1 }, .held = BH_HELD_NOT } });
    assert_false(is_unchecked(fixture, 1));
    bh_fixture_close(fixture);
}

static void
a_node_that_is_not_there_cannot_be_checked(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    assert_int_equal(
        bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_CHECKED, .u.checked = { { 9 }, 0 } }),
        BH_NOT_FOUND);
    assert_int_equal(
        bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_CHECKED, .u.checked = { { 1 }, 2 } }),
        BH_RANGE);
    bh_fixture_close(fixture);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_start_is_tried_elsewhere_once),
        cmocka_unit_test(what_is_refused_is_tried_on_other_nodes_only),
        cmocka_unit_test(an_old_record_means_what_it_meant),
        cmocka_unit_test(on_the_only_node_it_waits_a_while),
        cmocka_unit_test(a_node_on_which_two_jobs_fail_gets_no_more),
        cmocka_unit_test(one_tenant_alone_takes_no_node_from_others),
        cmocka_unit_test(two_tenants_have_it_checked_and_once_a_minute_at_most),
        cmocka_unit_test(a_start_that_comes_well_begins_the_count_anew),
        cmocka_unit_test(an_operator_may_skip_the_check),
        cmocka_unit_test(a_node_that_is_not_there_cannot_be_checked),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
