#include "engine/placement/tenant_change.h"

#include "engine/step/fixture_test.h"

static bh_rc
tenant_change_test_set(struct bh_fixture *fixture, struct bh_ev_tenant tenant)
{
    tenant.limit = tenant.limit ? tenant.limit : BH_UNLIMITED;
    return bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_TENANT, .u.tenant = tenant });
}

static bh_rc
take_away(struct bh_fixture *fixture, uint32_t tenant)
{
    struct bh_event event = { .kind = BH_EV_TENANT_REMOVE };

    event.u.tenant.tenant.v = tenant;
    return bh_fixture_send(fixture, &event);
}

static void
changes_that_cannot_be_are_refused(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    assert_int_equal(
        tenant_change_test_set(fixture, (struct bh_ev_tenant){ .tenant = { 1 }, .parent = { 21 } }),
        BH_CONFLICT);
    assert_int_equal(fixture->step.verdict.code, BH_REASON_TENANT_CYCLE);
    assert_int_equal(
        tenant_change_test_set(fixture, (struct bh_ev_tenant){ .tenant = { 5 }, .parent = { 77 } }),
        BH_NOT_FOUND);
    assert_int_equal(fixture->step.verdict.tenant.v, 77);
    assert_int_equal(
        tenant_change_test_set(
            fixture, (struct bh_ev_tenant){ .tenant = { 5 }, .quota_count = 1, .quotas = { { .of = 99 } } }),
        BH_NOT_FOUND);
    assert_int_equal(fixture->step.verdict.sku.v, 99);
    assert_int_equal(
        tenant_change_test_set(fixture, (struct bh_ev_tenant){ .tenant = { 5 }, .quota_count = 9 }),
        BH_RANGE);
    assert_int_equal(
        tenant_change_test_set(fixture, (struct bh_ev_tenant){ .tenant = { 5 },
                                                               .quota_count = 2,
                                                               .quotas = { { .of = 1 }, { .of = 1 } } }),
        BH_RANGE);
    assert_int_equal(take_away(fixture, 2), BH_CONFLICT);
    assert_int_equal(fixture->step.verdict.code, BH_REASON_TENANT_BUSY);
    assert_int_equal(take_away(fixture, 77), BH_NOT_FOUND);
    bh_fixture_close(fixture);
}

static void
a_boundary_that_leases_already_cross_is_refused(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_tenant fortress = {
        .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT, .boundary = BH_BOUNDARY_FORTRESS
    };
    uint64_t job;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    job = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1));
    assert_int_equal(tenant_change_test_set(fixture, fortress), BH_CONFLICT);
    assert_int_equal(fixture->step.verdict.code, BH_REASON_BOUNDARY);
    bh_fixture_exit_job(fixture, job, 0);
    assert_int_equal(tenant_change_test_set(fixture, fortress), BH_OK);
    bh_fixture_close(fixture);
}

static void
usage_moves_with_the_tenant(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_tenant_view view;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(
        tenant_change_test_set(
            fixture, (struct bh_ev_tenant){ .tenant = { 21 }, .parent = { 3 }, .kind = BH_TENANT_PROJECT }),
        BH_OK);
    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ 2 }, fixture->now_ns, &view));
    assert_int_equal(view.used, 0);
    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ 3 }, fixture->now_ns, &view));
    assert_int_equal(view.used, 600);
    assert_int_equal(view.running, 1);
    bh_fixture_close(fixture);
}

static void
removing_ends_its_jobs_and_keeps_the_sums(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t running = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    uint64_t waiting = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    struct bh_tenant_view view;

    fixture->now_ns += 1000;
    assert_int_equal(take_away(fixture, 21), BH_OK);
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_CANCELLED);
    assert_int_equal(bh_fixture_state(fixture, running), BH_JOB_STOPPING);
    assert_int_equal(bh_fixture_try_submit(fixture, bh_fixture_submission(21, 1, 1)), BH_NOT_FOUND);
    bh_fixture_finish_effects(fixture);
    bh_fixture_tick(fixture, 1);
    assert_false(bh_view_tenant(fixture->engine, (bh_tenant_id){ 21 }, fixture->now_ns, &view));
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(changes_that_cannot_be_are_refused),
    cmocka_unit_test(a_boundary_that_leases_already_cross_is_refused),
    cmocka_unit_test(usage_moves_with_the_tenant),
    cmocka_unit_test(removing_ends_its_jobs_and_keeps_the_sums),
};
BH_TEST_MAIN(tests)
