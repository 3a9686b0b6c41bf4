#include "engine/read/view.h"

#include "engine/step/fixture_test.h"

static void
a_job_is_shown_as_submitted(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit submit = bh_fixture_submission(21, 1, 2);
    struct bh_job_view view, by_lease;
    uint64_t job;

    submit.principal.v = 77;
    submit.kind = BH_JOB_SERVICE;
    submit.priority = BH_PRIORITY_HIGH;
    submit.contract = BH_CONTRACT_SUSPEND;
    submit.time_limit_ns = 1234;
    submit.spec[31] = 9;
    job = bh_fixture_submit_running(fixture, submit);
    view = bh_fixture_job(fixture, job);
    assert_int_equal(view.principal.v, 77);
    assert_int_equal(view.kind, BH_JOB_SERVICE);
    assert_int_equal(view.priority, BH_PRIORITY_HIGH);
    assert_int_equal(view.contract, BH_CONTRACT_SUSPEND);
    assert_int_equal(view.time_limit_ns, 1234);
    assert_int_equal(view.spec[31], 9);
    assert_int_equal(view.partition_count, 2);
    assert_int_equal(view.node.v, 1);
    assert_true(bh_view_lease(fixture->engine, view.lease, &by_lease));
    assert_int_equal(by_lease.job.v, job);
    assert_false(bh_view_lease(fixture->engine, (bh_lease_id){ 999 }, &by_lease));
    bh_fixture_close(fixture);
}

static void
settings_are_shown_as_they_were_set(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_tenant tenant = { .tenant = { 2 },
                                   .parent = { 1 },
                                   .kind = BH_TENANT_DEPARTMENT,
                                   .boundary = BH_BOUNDARY_SOFT,
                                   .dedicated_nodes = true,
                                   .limit = 5000,
                                   .guarantee = 100,
                                   .withhold = 50,
                                   .weight = 7,
                                   .user_limit = 4000,
                                   .quota_count = 1,
                                   .quotas = { { BH_QUOTA_SKU, 1, .limit = 4 } } };
    struct bh_tenant_view view;
    struct bh_ev_sku sku;

    bh_fixture_tenant(fixture, tenant);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 2));
    bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 3));
    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ 2 }, fixture->now_ns, &view));
    assert_int_equal(view.settings.parent.v, 1);
    assert_int_equal(view.settings.boundary, BH_BOUNDARY_SOFT);
    assert_true(view.settings.dedicated_nodes);
    assert_int_equal(view.settings.limit, 5000);
    assert_int_equal(view.settings.guarantee, 100);
    assert_int_equal(view.settings.quotas[0].limit, 4);
    assert_int_equal(view.used, 1200);
    assert_int_equal(view.quota_used[0], 2);
    assert_int_equal(view.running, 1);
    assert_int_equal(view.pending, 1);
    assert_true(bh_view_sku(fixture->engine, (bh_sku_id){ 3 }, &sku));
    assert_int_equal(sku.models[0].profile, BH_PROFILE_WHOLE.v);
    assert_false(bh_view_sku(fixture->engine, (bh_sku_id){ 99 }, &sku));
    bh_fixture_close(fixture);
}

static void
walks_see_everything_once(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(3);
    struct bh_job_view job;
    struct bh_gpu_view gpu;
    struct bh_partition_view partition;
    struct bh_tenant_view tenant;
    uint32_t cursor = 0, jobs = 0, gpus = 0, partitions = 0, tenants = 0;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 2));
    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1));
    while (bh_view_next_job(fixture->engine, &cursor, &job))
        jobs++;
    for (cursor = 0; bh_view_next_gpu(fixture->engine, &cursor, &gpu); gpus++)
        assert_int_equal(gpu.used.memory + gpu.idle.memory + gpu.unusable.memory, BH_GPU_PARTS);
    for (cursor = 0; bh_view_next_partition(fixture->engine, &cursor, &partition); partitions++)
        assert_int_equal(partition.tenant.v, partition.partition.profile == 1 ? 31 : 21);
    for (cursor = 0; bh_view_next_tenant(fixture->engine, &cursor, fixture->now_ns, &tenant);)
        tenants++;
    assert_int_equal(jobs, 2);
    assert_int_equal(gpus, 3);
    assert_int_equal(partitions, 3);
    assert_int_equal(tenants, 5);
    bh_fixture_close(fixture);
}

/* The only room that is kept. */
static struct bh_reservation_view
only_kept(const struct bh_fixture *fixture)
{
    struct bh_reservation_view kept, other;
    uint32_t cursor = 0;

    assert_true(bh_view_next_reservation(fixture->engine, &cursor, &kept));
    assert_false(bh_view_next_reservation(fixture->engine, &cursor, &other));
    return kept;
}

/* Two GPUs are in use for an hour: a gang waits for both, a higher job has one cleared. */
static void
room_that_is_kept_is_shown_with_its_places(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit low = bh_fixture_submission(21, 3, 1), gang = low, high = low;
    struct bh_reservation_view kept;
    uint32_t cursor = 0;
    uint64_t job;

    assert_false(bh_view_next_reservation(fixture->engine, &cursor, &kept));
    low.time_limit_ns = UINT64_C(3600000000000);
    bh_fixture_submit_running(fixture, low);
    bh_fixture_submit_running(fixture, low);
    gang.gang = 2;
    job = bh_fixture_submit(fixture, gang);
    kept = only_kept(fixture);
    assert_int_equal(kept.job.v, job);
    assert_int_equal(kept.at_ns, fixture->now_ns + low.time_limit_ns);
    assert_int_equal(kept.partition_count, 2);
    assert_int_equal(kept.partitions[0].gpu.v + kept.partitions[1].gpu.v, 1 + 2);
    assert_int_equal(kept.partitions[1].profile, BH_PROFILE_WHOLE.v);
    assert_int_equal(bh_fixture_cancel(fixture, job), BH_OK);
    high.priority = BH_PRIORITY_HIGH;
    job = bh_fixture_submit(fixture, high);
    kept = only_kept(fixture);
    assert_int_equal(kept.job.v, job);
    assert_int_equal(kept.at_ns, 0);
    assert_int_equal(kept.partition_count, 1);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_is_shown_as_submitted),
    cmocka_unit_test(settings_are_shown_as_they_were_set),
    cmocka_unit_test(walks_see_everything_once),
    cmocka_unit_test(room_that_is_kept_is_shown_with_its_places),
};
BH_TEST_MAIN(tests)
