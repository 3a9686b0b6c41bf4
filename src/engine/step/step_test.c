#include "engine/step/step.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

static void
a_job_runs_from_submit_to_end(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(8);
    uint64_t job = bh_fixture_submit(fixture, (struct bh_ev_submit){ .tenant = { 21 }, .sku = { 1 } });

    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 1);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_job(fixture, job).grade, BH_GRADE_C);
    bh_fixture_exit_job(fixture, job, 0);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_COMPLETED);
    bh_fixture_tick(fixture, 1);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STATES);
    bh_fixture_close(fixture);
}

static void
a_second_job_of_the_tenant_uses_the_carved_partition(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit submit = { .tenant = { 21 }, .sku = { 1 } };
    uint64_t job = bh_fixture_submit(fixture, submit);

    bh_fixture_finish_effects(fixture);
    bh_fixture_exit_job(fixture, job, 3);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    bh_fixture_submit(fixture, submit);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 0);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_START), 1);
    bh_fixture_close(fixture);
}

static void
another_tenants_partition_is_destroyed_and_carved_anew(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, (struct bh_ev_submit){ .tenant = { 21 }, .sku = { 1 } });

    bh_fixture_finish_effects(fixture);
    bh_fixture_exit_job(fixture, job, 0);
    bh_fixture_submit(fixture, (struct bh_ev_submit){ .tenant = { 31 }, .sku = { 1 } });
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 1);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
    assert_int_equal(fixture->step.effects[0].kind, BH_FX_JOB);
    bh_fixture_finish_effects(fixture);
    bh_fixture_close(fixture);
}

static void
cancel_works_in_every_state(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit whole = { .tenant = { 21 }, .sku = { 3 } };
    uint64_t running = bh_fixture_submit(fixture, whole), waiting, carving;

    bh_fixture_finish_effects(fixture);
    waiting = bh_fixture_submit(fixture, whole);
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_cancel(fixture, waiting), BH_OK);
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_CANCELLED);
    assert_int_equal(bh_fixture_cancel(fixture, waiting), BH_CONFLICT);
    assert_int_equal(bh_fixture_cancel(fixture, running), BH_OK);
    assert_int_equal(bh_fixture_state(fixture, running), BH_JOB_STOPPING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, running), BH_JOB_CANCELLED);
    carving = bh_fixture_submit(fixture, (struct bh_ev_submit){ .tenant = { 21 }, .sku = { 1 } });
    assert_int_equal(bh_fixture_cancel(fixture, carving), BH_OK);
    assert_int_equal(bh_fixture_state(fixture, carving), BH_JOB_CANCELLED);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_cancel(fixture, 999), BH_NOT_FOUND);
    bh_fixture_close(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_from_submit_to_end),
        cmocka_unit_test(a_second_job_of_the_tenant_uses_the_carved_partition),
        cmocka_unit_test(another_tenants_partition_is_destroyed_and_carved_anew),
        cmocka_unit_test(cancel_works_in_every_state),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
