/* A job of several members: placed, run and ended all or none. */
#include "engine/state/gang.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

/* Two nodes of `gpus` H100s each. */
static struct bh_fixture *
two_nodes(uint32_t gpus)
{
    struct bh_fixture *fixture = bh_fixture_site(gpus);

    bh_fixture_h100s(fixture, 2, 1 + gpus, gpus);
    return fixture;
}

static struct bh_ev_submit
gang_of(uint32_t members, uint32_t sku, uint32_t count)
{
    struct bh_ev_submit submit = bh_fixture_submission(21, sku, count);

    submit.gang = members;
    return submit;
}

static struct bh_member_view
gang_test_member(const struct bh_fixture *fixture, uint64_t job, uint32_t number)
{
    struct bh_member_view view = { 0 };

    assert_true(bh_view_member(fixture->engine, (bh_job_id){ job }, number, &view));
    return view;
}

static void
gang_test_ended(struct bh_fixture *fixture, uint64_t job, uint32_t number, int32_t status)
{
    struct bh_event event = { .kind = BH_EV_ENDED };

    event.u.ended = (struct bh_ev_ended){ .lease = gang_test_member(fixture, job, number).lease,
                                          .cause = BH_END_EXITED,
                                          .exit_status = status };
    bh_fixture_must_send(fixture, &event);
}

static void
a_gang_is_placed_in_one_record(void **state)
{
    struct bh_fixture *fixture = two_nodes(2);
    uint64_t job = bh_fixture_submit(fixture, gang_of(3, 3, 1));

    assert_int_equal(fixture->step.decision_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(fixture->step.decisions[i].kind, BH_DO_PLACE);
        assert_int_equal(fixture->step.decisions[i].member, i);
        assert_int_equal(gang_test_member(fixture, job, i).lease.v, 1 + i);
    }
    assert_int_equal(gang_test_member(fixture, job, 0).node.v, 1);
    assert_int_equal(gang_test_member(fixture, job, 1).node.v, 1);
    assert_int_equal(gang_test_member(fixture, job, 2).node.v, 2);
    assert_false(bh_view_member(fixture->engine, (bh_job_id){ job }, 3, &(struct bh_member_view){ 0 }));
    bh_fixture_close(fixture);
}

static void
no_member_starts_before_all_partitions_are_there(void **state)
{
    struct bh_fixture *fixture = two_nodes(1);
    uint64_t job = bh_fixture_submit(fixture, gang_of(2, 3, 1));

    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 2);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_OK));
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_START), 0);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_OK));
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_START), 2);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_OK));
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_OK));
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
a_member_that_ends_well_waits_for_the_others(void **state)
{
    struct bh_fixture *fixture = two_nodes(1);
    uint64_t job = bh_fixture_submit_running(fixture, gang_of(2, 3, 1));

    gang_test_ended(fixture, job, 0, 0);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    assert_true(gang_test_member(fixture, job, 0).done);
    assert_int_equal(gang_test_member(fixture, job, 0).partition_count, 0);
    gang_test_ended(fixture, job, 1, 0);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_COMPLETED);
    bh_fixture_close(fixture);
}

static void
the_first_that_fails_says_how_the_job_ended(void **state)
{
    struct bh_fixture *fixture = two_nodes(2);
    uint64_t job = bh_fixture_submit_running(fixture, gang_of(4, 3, 1));
    struct bh_job_view view;

    gang_test_ended(fixture, job, 2, 0);
    gang_test_ended(fixture, job, 1, 7);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_STOP), 2);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STOPPING);
    bh_fixture_finish_effects(fixture);
    view = bh_fixture_job(fixture, job);
    assert_int_equal(view.state, BH_JOB_FAILED);
    assert_int_equal(view.cause, BH_END_EXITED);
    assert_int_equal(view.exit_status, 7);
    bh_fixture_close(fixture);
}

static void
a_lost_node_queues_the_gang_again_once(void **state)
{
    struct bh_fixture *fixture = two_nodes(1);
    uint64_t job = bh_fixture_submit_running(fixture, gang_of(2, 3, 1));
    struct bh_event event = { .kind = BH_EV_ENDED };

    event.u.ended =
        (struct bh_ev_ended){ .lease = gang_test_member(fixture, job, 1).lease, .cause = BH_END_NODE_LOST };
    bh_fixture_must_send(fixture, &event);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STOPPING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_job(fixture, job).restarts, 1);
    bh_fixture_close(fixture);
}

/* One member is lost, the job is cancelled while the other has its grace, and that one ends. */
static void
a_cancel_outranks_what_would_queue_it_again(void **state)
{
    static const struct {
        const char *name;
        enum bh_end_cause lost, cancel;
        bool elsewhere;
        enum bh_job_state becomes;
    } cases[] = {
        { "node", BH_END_NODE_LOST, BH_END_CANCELLED, false, BH_JOB_CANCELLED },
        { "keeper", BH_END_KEEPER_LOST, BH_END_CANCELLED, true, BH_JOB_CANCELLED },
        { "start", BH_END_START_FAILED, BH_END_CANCELLED, true, BH_JOB_CANCELLED },
        { "keeper, its grant", BH_END_KEEPER_LOST, BH_END_DATASET, true, BH_JOB_FAILED },
        { "keeper, by a record of before", BH_END_KEEPER_LOST, BH_END_CANCELLED, false, BH_JOB_FAILED },
        { "start, for good", BH_END_START_FAILED, BH_END_CANCELLED, false, BH_JOB_FAILED },
        { "a fault of its own", BH_END_SIGNALLED, BH_END_CANCELLED, false, BH_JOB_FAILED },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = two_nodes(1);
        uint64_t job = bh_fixture_submit_running(fixture, gang_of(2, 3, 1));
        struct bh_event event = { .kind = BH_EV_ENDED };
        struct bh_event cancel = { .kind = BH_EV_CANCEL };

        event.u.ended = (struct bh_ev_ended){ .lease = gang_test_member(fixture, job, 1).lease,
                                              .cause = cases[i].lost,
                                              .elsewhere = cases[i].elsewhere };
        cancel.u.job = (struct bh_ev_job){ .job = { job }, .cause = cases[i].cancel };
        bh_fixture_must_send(fixture, &event);
        BH_CHECK_EQ(cases[i].name, bh_fixture_state(fixture, job), BH_JOB_STOPPING);
        BH_CHECK_EQ(cases[i].name, bh_fixture_send(fixture, &cancel), BH_OK);
        bh_fixture_finish_effects(fixture);
        BH_CHECK_EQ(cases[i].name, bh_fixture_state(fixture, job), cases[i].becomes);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
a_suspended_gang_resumes_all_together(void **state)
{
    struct bh_fixture *fixture = two_nodes(1);
    struct bh_ev_submit low = gang_of(2, 3, 1), high = bh_fixture_submission(21, 3, 1);
    uint64_t job, urgent;

    low.priority = BH_PRIORITY_LOW;
    low.contract = BH_CONTRACT_SUSPEND;
    high.priority = BH_PRIORITY_HIGH;
    job = bh_fixture_submit_running(fixture, low);
    urgent = bh_fixture_submit(fixture, high);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_SUSPEND), 2);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, urgent), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_SUSPENDED);
    assert_int_equal(bh_fixture_job(fixture, job).suspensions, 1);
    bh_fixture_exit_job(fixture, urgent, 0);
    assert_int_equal(fixture->step.decision_count, 2);
    assert_int_equal(fixture->step.decisions[1].kind, BH_DO_RESUME);
    assert_int_equal(fixture->step.decisions[1].member, 1);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
a_claim_covers_all_members(void **state)
{
    struct bh_fixture *fixture = two_nodes(1);
    struct bh_ev_submit low = bh_fixture_submission(21, 3, 1), high = gang_of(2, 3, 1);
    uint64_t gang;

    low.priority = BH_PRIORITY_LOW;
    high.priority = BH_PRIORITY_HIGH;
    bh_fixture_submit_running(fixture, low);
    bh_fixture_submit_running(fixture, low);
    gang = bh_fixture_submit(fixture, high);
    assert_int_equal(fixture->step.decision_count, 4);
    assert_int_equal(fixture->step.decisions[0].kind, BH_DO_CLAIM);
    assert_int_equal(fixture->step.decisions[1].kind, BH_DO_CLAIM);
    assert_int_equal(fixture->step.decisions[2].kind, BH_DO_STOP);
    assert_int_equal(fixture->step.decisions[3].kind, BH_DO_STOP);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_OK));
    assert_int_equal(bh_fixture_state(fixture, gang), BH_JOB_PENDING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, gang), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gang_is_placed_in_one_record),
    cmocka_unit_test(no_member_starts_before_all_partitions_are_there),
    cmocka_unit_test(a_member_that_ends_well_waits_for_the_others),
    cmocka_unit_test(the_first_that_fails_says_how_the_job_ended),
    cmocka_unit_test(a_lost_node_queues_the_gang_again_once),
    cmocka_unit_test(a_cancel_outranks_what_would_queue_it_again),
    cmocka_unit_test(a_suspended_gang_resumes_all_together),
    cmocka_unit_test(a_claim_covers_all_members),
};
BH_TEST_MAIN(tests)
