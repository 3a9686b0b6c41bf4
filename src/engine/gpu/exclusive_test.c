#include "engine/gpu/exclusive.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* A GPU whose driver lacks the fix for CVE-2026-24197: nothing is carved or destroyed on it
 * beside another tenant's lease.  Tenants 21 and 31 are of two departments: MIG may
 * stand between them. */

static struct bh_fixture *
old_driver(void)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { 1 },
                                                .node = { 1 },
                                                .model = BH_GPU_H100_80GB,
                                                .managed = true,
                                                .mig_capable = true,
                                                .lone_carve = true });
    return fixture;
}

static uint64_t
run_one(struct bh_fixture *fixture, uint32_t tenant, uint32_t sku)
{
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(tenant, sku, 1));

    bh_fixture_finish_effects(fixture);
    return job;
}

static void
another_tenant_waits(void **state)
{
    struct bh_fixture *fixture = old_driver();
    uint64_t first = run_one(fixture, 21, 1), other = run_one(fixture, 31, 1);
    struct bh_reason reason = bh_fixture_why(fixture, other);

    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_PENDING);
    assert_int_equal(reason.code, BH_REASON_REPARTITION);
    assert_int_equal(reason.job.v, first);
    assert_int_equal(reason.gpu.v, 1);
    bh_fixture_exit_job(fixture, first, 0);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
the_same_tenant_does_not(void **state)
{
    struct bh_fixture *fixture = old_driver();
    uint64_t first = run_one(fixture, 21, 1), second = run_one(fixture, 21, 1);

    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
a_fixed_driver_lets_both_run(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t first = run_one(fixture, 21, 1), other = run_one(fixture, 31, 1);

    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* An instance that was made while no job ran may be used by any tenant. */
static void
what_stands_ready_is_used(void **state)
{
    struct bh_fixture *fixture = old_driver();
    struct bh_event event = { .kind = BH_EV_LAYOUT };
    uint64_t first, other;

    event.u.gpu_layout =
        (struct bh_ev_layout){ .gpu = { 1 }, .mode = BH_LAYOUT_DECLARED, .apply = 1, .partition_count = 2 };
    for (uint32_t i = 0; i < 2; i++) {
        event.u.gpu_layout.partitions[i].profile = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
        event.u.gpu_layout.partitions[i].start = 3 * i;
    }
    bh_fixture_must_send(fixture, &event);
    bh_fixture_finish_effects(fixture);
    first = run_one(fixture, 21, 1);
    other = run_one(fixture, 31, 1);
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_why(fixture, run_one(fixture, 31, 1)).code, BH_REASON_REPARTITION);
    bh_fixture_close(fixture);
}

/* A failed destroy is not tried again while a job of another tenant runs. */
static void
a_stuck_partition_waits_too(void **state)
{
    struct bh_fixture *fixture = old_driver();
    uint64_t first = run_one(fixture, 21, 1), second;

    bh_fixture_exit_job(fixture, first, 0);
    second = bh_fixture_submit(fixture, bh_fixture_submission(31, 2, 1)); /* 21's partition is in its way */
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    bh_fixture_finish_effects(fixture);
    bh_fixture_exit_job(fixture, second, 0);
    first = run_one(fixture, 21, 1);
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING);
    bh_fixture_tick(fixture, 31000000000);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 0); /* it is for 31 */
    bh_fixture_exit_job(fixture, first, 0);
    bh_fixture_tick(fixture, 31000000000);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(another_tenant_waits),         cmocka_unit_test(the_same_tenant_does_not),
    cmocka_unit_test(a_fixed_driver_lets_both_run), cmocka_unit_test(what_stands_ready_is_used),
    cmocka_unit_test(a_stuck_partition_waits_too),
};
BH_TEST_MAIN(tests)
