#include "engine/queue/avoid.h"

#include "engine/step/fixture_start_test.h"

#define SECOND UINT64_C(1000000000)

/* As often as it takes, and at no tenant's charge. */
static void
who_finds_no_scratch_waits(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));

    for (int i = 0; i < 4; i++) {
        struct bh_host_view view;

        bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .scratch = true });
        assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
        assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_SCRATCH);
        assert_int_equal(bh_fixture_why(fixture, job).guarantee.cause, 0);
        assert_true(bh_view_host(fixture->engine, (bh_node_id){ 1 }, &view));
        assert_false(view.unchecked);
        bh_fixture_tick(fixture, 30 * SECOND);
        assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    }
    assert_int_equal(bh_fixture_job(fixture, job).restarts, 0);
    bh_fixture_fail_start(
        fixture,
        (struct bh_ev_lease){ .rc = 0 }); /* what fails otherwise is still tried once more, and no more */
    bh_fixture_tick(fixture, 5 * SECOND);
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    bh_fixture_close(fixture);
}

/* Another node at once; after that none, until something ends. */
static void
the_other_node_is_tried_first(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t runs = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)), job;
    uint32_t first;

    bh_fixture_h100s(fixture, 2, 2, 1);
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    first = bh_fixture_placement_of(fixture, job);
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .scratch = true });
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    assert_true(bh_fixture_placement_of(fixture, job) != first);
    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .scratch = true });
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    bh_fixture_tick(fixture, 6 * SECOND);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    bh_fixture_exit_job(fixture, runs, 0);
    bh_fixture_tick(fixture, 4 * SECOND);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    bh_fixture_tick(fixture, 1 * SECOND);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

/* Others of the same needs may want no scratch: they do not wait, and no room is kept from them. */
static void
who_wants_none_goes_on(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1)), beside;

    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .scratch = true });
    for (uint32_t i = 0; i < 6; i++) {
        beside = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
        assert_int_equal(bh_fixture_state(fixture, beside), BH_JOB_RUNNING);
    }
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static void
a_failed_start_is_the_reason_while_its_node_is_kept_off(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    struct bh_reason why;

    bh_fixture_fail_start(fixture, (struct bh_ev_lease){ .rc = 0 });
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    why = bh_fixture_why(fixture, job);
    assert_int_equal(why.code, BH_REASON_START_FAILED);
    assert_int_equal(why.guarantee.cause, 0);
    assert_true(why.gpu.v != 0 && why.frees_at_ns != 0);
    bh_fixture_close(fixture);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_finds_no_scratch_waits),
        cmocka_unit_test(the_other_node_is_tried_first),
        cmocka_unit_test(who_wants_none_goes_on),
        cmocka_unit_test(a_failed_start_is_the_reason_while_its_node_is_kept_off),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
