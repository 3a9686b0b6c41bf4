#include "engine/preempt/preempt.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

static struct bh_ev_submit
of(struct bh_ev_submit submit, enum bh_priority priority, enum bh_contract contract)
{
    submit.priority = priority;
    submit.contract = contract;
    return submit;
}

static struct bh_ev_submit
urgent(uint32_t tenant, uint32_t sku, uint32_t count)
{
    return of(bh_fixture_submission(tenant, sku, count), BH_PRIORITY_URGENT, BH_CONTRACT_REQUEUE);
}

static void
a_low_job_is_suspended_and_resumed(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t low = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_SUSPEND));
    uint64_t lease = bh_fixture_job(fixture, low).lease.v;
    uint64_t high = bh_fixture_submit(fixture, urgent(31, 1, 1));

    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_SUSPENDING);
    assert_int_equal(bh_fixture_why(fixture, high).code, BH_REASON_PREEMPTING);
    assert_int_equal(bh_fixture_why(fixture, high).job.v, low);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_SUSPENDED);
    assert_int_equal(bh_fixture_why(fixture, low).code, BH_REASON_SUSPENDED);
    assert_int_equal(bh_fixture_why(fixture, low).job.v, high);
    assert_int_equal(bh_fixture_state(fixture, high), BH_JOB_RUNNING);
    bh_fixture_exit_job(fixture, high, 0);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_RESUMING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_job(fixture, low).lease.v, lease);
    assert_int_equal(bh_fixture_job(fixture, low).suspensions, 1);
    assert_int_equal(bh_fixture_job(fixture, low).restarts, 0);
    bh_fixture_close(fixture);
}

static void
a_job_that_keeps_the_gpu_is_stopped_and_queued_again(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t low = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_SUSPEND));
    uint64_t high = bh_fixture_submit(fixture, urgent(31, 3, 1));

    bh_fixture_answer_next(fixture, BH_OUTCOME_CONTEXT_HELD);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_STOPPING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, high), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_job(fixture, low).restarts, 1);
    bh_fixture_close(fixture);
}

/* One GPU held by a job of this contract and priority; does an urgent one (or one of
 * the same class) make it leave? */
static void
only_lower_and_willing_jobs_make_way(void **state)
{
    static const struct {
        const char *name;
        enum bh_priority holder, comer;
        enum bh_contract contract;
        enum bh_job_state becomes;
    } cases[] = {
        { "stopped", BH_PRIORITY_LOW, BH_PRIORITY_NORMAL, BH_CONTRACT_REQUEUE, BH_JOB_STOPPING },
        { "suspended", BH_PRIORITY_HIGH, BH_PRIORITY_URGENT, BH_CONTRACT_SUSPEND, BH_JOB_SUSPENDING },
        { "never", BH_PRIORITY_LOW, BH_PRIORITY_URGENT, BH_CONTRACT_NEVER, BH_JOB_RUNNING },
        { "the same class", BH_PRIORITY_HIGH, BH_PRIORITY_HIGH, BH_CONTRACT_REQUEUE, BH_JOB_RUNNING },
        { "a higher class", BH_PRIORITY_HIGH, BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE, BH_JOB_RUNNING },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        uint64_t holder = bh_fixture_submit_running(
            fixture, of(bh_fixture_submission(21, 3, 1), cases[i].holder, cases[i].contract));

        bh_fixture_submit(fixture, of(bh_fixture_submission(31, 3, 1), cases[i].comer, BH_CONTRACT_REQUEUE));
        BH_CHECK_EQ(cases[i].name, bh_fixture_state(fixture, holder), cases[i].becomes);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* A full GPU of small jobs: a medium one needs 4 units and 3 slices. */
static void
no_more_victims_than_needed(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint32_t victims = 0;
    uint64_t jobs[7];

    for (size_t i = 0; i < BH_COUNT(jobs); i++)
        jobs[i] = bh_fixture_submit_running(
            fixture, of(bh_fixture_submission(21, 1, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE));
    bh_fixture_submit(fixture, urgent(31, 2, 1));
    for (size_t i = 0; i < BH_COUNT(jobs); i++)
        victims += bh_fixture_state(fixture, jobs[i]) == BH_JOB_STOPPING;
    assert_int_equal(victims, 3); /* units 4 to 6; unit 7 is free */
    bh_fixture_close(fixture);
}

static void
the_least_work_is_lost(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit low = of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE);
    uint64_t old = bh_fixture_submit_running(fixture, low), young;

    fixture->now_ns += 1000000;
    young = bh_fixture_submit_running(fixture, low);
    fixture->now_ns += 1000000;
    bh_fixture_submit(fixture, urgent(31, 3, 1));
    assert_int_equal(bh_fixture_state(fixture, old), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, young), BH_JOB_STOPPING);
    bh_fixture_close(fixture);
}

static void
the_lowest_class_leaves_first(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t low, normal;

    low = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE));
    fixture->now_ns += 1000000;
    normal = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_NORMAL, BH_CONTRACT_REQUEUE));
    bh_fixture_submit(fixture, urgent(31, 3, 1));
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_STOPPING);
    assert_int_equal(bh_fixture_state(fixture, normal), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* Jobs that want the same do not wait for each other's room. */
static void
each_job_of_a_class_makes_room_for_itself(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit low = of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE);
    uint64_t first = bh_fixture_submit_running(fixture, low),
             second = bh_fixture_submit_running(fixture, low);
    uint64_t high[3];

    for (size_t i = 0; i < BH_COUNT(high); i++)
        high[i] = bh_fixture_submit(fixture, urgent(31, 3, 1));
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_STOPPING);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_STOPPING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, high[0]), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, high[1]), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, high[2]), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static void
room_that_is_made_is_kept(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t low = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE));
    uint64_t high = bh_fixture_submit(fixture, urgent(31, 3, 1)), other;

    other = bh_fixture_submit(fixture,
                              of(bh_fixture_submission(21, 1, 1), BH_PRIORITY_NORMAL, BH_CONTRACT_REQUEUE));
    assert_int_equal(bh_fixture_why(fixture, other).code, BH_REASON_NO_CAPACITY);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, high), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static void
a_limit_held_by_lower_jobs_is_freed(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(4);
    uint64_t low, outsider, high;

    bh_fixture_tenant(fixture,
                      (struct bh_ev_tenant){
                          .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT, .limit = 4200 });
    low = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE));
    outsider = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(31, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE));
    high = bh_fixture_submit(fixture, urgent(21, 3, 1));
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_STOPPING);
    assert_int_equal(bh_fixture_state(fixture, outsider), BH_JOB_RUNNING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, high), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
no_job_leaves_in_vain(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t low = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE));

    bh_fixture_submit_running(fixture,
                              of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_NEVER));
    bh_fixture_submit(fixture, urgent(31, 3, 2)); /* would need both GPUs */
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
a_job_in_the_neighbourhood_makes_way_for_a_fortress(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t low, high;

    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                      .parent = { 1 },
                                                      .kind = BH_TENANT_DEPARTMENT,
                                                      .boundary = BH_BOUNDARY_FORTRESS });
    low = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 1, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE));
    high = bh_fixture_submit(fixture, urgent(31, 1, 1));
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_STOPPING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, high), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* Where only a limit is in the way, the job goes where it would have gone anyway. */
static void
room_for_a_limit_is_chosen_as_any_other(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t low, high;

    bh_fixture_tenant(fixture,
                      (struct bh_ev_tenant){
                          .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT, .limit = 700 });
    low = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 1, 1), BH_PRIORITY_LOW, BH_CONTRACT_SUSPEND));
    high = bh_fixture_submit(fixture, urgent(21, 1, 1));
    assert_int_equal(bh_fixture_placement_of(fixture, low), 106);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_SUSPENDED);
    assert_int_equal(bh_fixture_state(fixture, high), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_placement_of(fixture, high), 104);
    bh_fixture_close(fixture);
}

/* Room for a tenant with nodes of its own keeps others off the whole node. */
static void
a_node_that_is_being_made_free_takes_no_job(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t high, other;

    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                      .parent = { 1 },
                                                      .kind = BH_TENANT_DEPARTMENT,
                                                      .dedicated_nodes = true });
    bh_fixture_submit_running(fixture,
                              of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE));
    high = bh_fixture_submit(fixture, urgent(31, 3, 1));
    assert_int_equal(bh_fixture_why(fixture, high).code, BH_REASON_PREEMPTING);
    other = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_PENDING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, high), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_job(fixture, high).grade, BH_GRADE_A);
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static void
a_suspended_job_has_lower_ones_leave_its_place(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t normal = bh_fixture_submit_running(
        fixture, of(bh_fixture_submission(21, 3, 1), BH_PRIORITY_NORMAL, BH_CONTRACT_SUSPEND));
    uint64_t high = bh_fixture_submit_running(fixture, urgent(31, 1, 1)), low;
    struct bh_ev_submit brief = of(bh_fixture_submission(31, 1, 1), BH_PRIORITY_LOW, BH_CONTRACT_REQUEUE);

    brief.time_limit_ns = 3600000000000; /* it may use what is reserved for the suspended one */
    low = bh_fixture_submit_running(fixture, brief);
    assert_int_equal(bh_fixture_state(fixture, normal), BH_JOB_SUSPENDED);
    bh_fixture_exit_job(fixture, high, 0);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_STOPPING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, normal), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(room_for_a_limit_is_chosen_as_any_other),
    cmocka_unit_test(a_node_that_is_being_made_free_takes_no_job),
    cmocka_unit_test(a_suspended_job_has_lower_ones_leave_its_place),
    cmocka_unit_test(a_low_job_is_suspended_and_resumed),
    cmocka_unit_test(a_job_that_keeps_the_gpu_is_stopped_and_queued_again),
    cmocka_unit_test(only_lower_and_willing_jobs_make_way),
    cmocka_unit_test(no_more_victims_than_needed),
    cmocka_unit_test(the_least_work_is_lost),
    cmocka_unit_test(the_lowest_class_leaves_first),
    cmocka_unit_test(each_job_of_a_class_makes_room_for_itself),
    cmocka_unit_test(room_that_is_made_is_kept),
    cmocka_unit_test(a_limit_held_by_lower_jobs_is_freed),
    cmocka_unit_test(no_job_leaves_in_vain),
    cmocka_unit_test(a_job_in_the_neighbourhood_makes_way_for_a_fortress),
};
BH_TEST_MAIN(tests)
