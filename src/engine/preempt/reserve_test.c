#include "engine/preempt/reserve.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

static const uint64_t hour_ns = UINT64_C(3600000000000);

static struct bh_ev_submit
lasting(struct bh_ev_submit submit, uint64_t limit_ns)
{
    submit.time_limit_ns = limit_ns;
    return submit;
}

/* Two GPUs: one is held for two hours, the other is free; a job that wants both waits. */
static struct bh_fixture *
held_for_two_hours(uint64_t *ret_head)
{
    struct bh_fixture *fixture = bh_fixture_site(2);

    bh_fixture_submit_running(fixture, lasting(bh_fixture_submission(21, 3, 1), 2 * hour_ns));
    *ret_head = bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 2));
    return fixture;
}

static void
the_first_that_waits_gets_the_soonest_room(void **state)
{
    uint64_t head;
    struct bh_fixture *fixture = held_for_two_hours(&head);
    struct bh_job_view view = bh_fixture_job(fixture, head);

    assert_int_equal(view.state, BH_JOB_PENDING);
    assert_int_equal(view.reserved_ns, fixture->now_ns + 2 * hour_ns);
    bh_fixture_close(fixture);
}

static void
only_who_ends_in_time_goes_before(void **state)
{
    uint64_t head;
    struct bh_fixture *fixture = held_for_two_hours(&head);
    uint64_t limits[] = { 0, 3 * hour_ns, 2 * hour_ns, hour_ns };
    static const enum bh_job_state states[] = { BH_JOB_PENDING, BH_JOB_PENDING, BH_JOB_RUNNING,
                                                BH_JOB_PENDING };

    for (size_t i = 0; i < BH_COUNT(limits); i++) {
        uint64_t job = bh_fixture_submit(fixture, lasting(bh_fixture_submission(21, 3, 1), limits[i]));

        bh_fixture_finish_effects(fixture);
        BH_CHECK_EQ("backfilled", bh_fixture_state(fixture, job), states[i]);
    }
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

static void
the_first_begins_when_its_time_comes(void **state)
{
    uint64_t head;
    struct bh_fixture *fixture = held_for_two_hours(&head);

    bh_fixture_tick(fixture, 2 * hour_ns);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, head), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
the_reservation_moves_to_a_higher_one(void **state)
{
    uint64_t head, high;
    struct bh_fixture *fixture = held_for_two_hours(&head);
    struct bh_ev_submit submit = bh_fixture_submission(31, 3, 2);

    submit.priority = BH_PRIORITY_HIGH;
    bh_fixture_tenant(
        fixture, (struct bh_ev_tenant){
                     .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT, .guarantee = 4200 });
    high = bh_fixture_submit(fixture, submit);
    assert_int_not_equal(bh_fixture_job(fixture, high).reserved_ns, 0);
    assert_int_equal(bh_fixture_job(fixture, head).reserved_ns, 0);
    assert_int_equal(bh_fixture_cancel(fixture, high), BH_OK);
    assert_int_not_equal(bh_fixture_job(fixture, head).reserved_ns, 0);
    assert_int_equal(bh_fixture_cancel(fixture, head), BH_OK);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_that_waits_gets_the_soonest_room),
    cmocka_unit_test(only_who_ends_in_time_goes_before),
    cmocka_unit_test(the_first_begins_when_its_time_comes),
    cmocka_unit_test(the_reservation_moves_to_a_higher_one),
};
BH_TEST_MAIN(tests)
