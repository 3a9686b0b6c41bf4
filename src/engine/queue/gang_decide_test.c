/* Decisions on all members of a job stand in one record, and a record has its limits. */
#include "engine/queue/gang_decide.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

/* The largest gang, on GPUs that are full of idle partitions of others: every one is cleared
 * and carved in one record. */
static void
the_largest_gang_fits_in_a_record(void **state)
{
    enum { SMALL = 7 };
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_fixture *fixture;
    uint64_t jobs[32], gang;

    caps.nodes = 64;
    caps.gpus = BH_JOB_PARTITIONS_MAX;
    caps.partitions = 16384;
    fixture = bh_fixture_open_with(&caps);
    fixture->quick = true;
    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 1 }, .kind = BH_TENANT_ORGANIZATION });
    for (uint32_t i = 2; i <= 3; i++)
        bh_fixture_tenant(
            fixture, (struct bh_ev_tenant){ .tenant = { i }, .parent = { 1 }, .kind = BH_TENANT_PROJECT });
    bh_fixture_sku(fixture, 1, "1g.10gb");
    bh_fixture_sku(fixture, 3, NULL);
    for (uint32_t node = 0; node < 64; node++)
        bh_fixture_h100s(fixture, 1 + node, 1 + node * 4, 4);
    for (uint32_t i = 0; i < BH_COUNT(jobs); i++) {
        struct bh_ev_submit fill = { .tenant = { 2 }, .sku = { 1 }, .count = SMALL, .gang = 8 };

        jobs[i] = bh_fixture_submit_running(fixture, fill);
    }
    for (uint32_t i = 0; i < BH_COUNT(jobs); i++)
        assert_int_equal(bh_fixture_cancel(fixture, jobs[i]), BH_OK);
    bh_fixture_finish_effects(fixture);
    fixture->quick = false;
    free(fixture->replica);
    fixture->replica = bh_engine_grow(fixture->engine, bh_fixture_engine(&caps), &caps);
    gang = bh_fixture_submit(fixture,
                             (struct bh_ev_submit){ .tenant = { 3 }, .sku = { 3 }, .count = 4, .gang = 64 });
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), BH_JOB_PARTITIONS_MAX);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), BH_JOB_PARTITIONS_MAX * SMALL);
    fixture->quick = true;
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, gang), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* Many jobs of many partitions at once go into several records, each of which can be written. */
static void
a_record_has_so_many_partitions(void **state)
{
    enum { JOBS = 60, COUNT = 16 };
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_ev_tenant tenant = { .tenant = { 1 }, .kind = BH_TENANT_ORGANIZATION, .limit = 600 * COUNT };
    struct bh_event event = { .kind = BH_EV_TENANT };
    struct bh_fixture *fixture;
    uint32_t placed = 0;

    caps.nodes = JOBS;
    fixture = bh_fixture_open_with(&caps);
    bh_fixture_tenant(fixture, tenant);
    bh_fixture_sku(fixture, 1, "1g.10gb");
    for (uint32_t node = 0; node < JOBS; node++)
        bh_fixture_h100s(fixture, 1 + node, 1 + node * 3, 3);
    for (uint32_t i = 0; i < JOBS; i++)
        bh_fixture_submit(fixture, bh_fixture_submission(1, 1, COUNT));
    event.u.tenant = tenant;
    event.u.tenant.limit = BH_UNLIMITED;
    for (bh_fixture_must_send(fixture, &event); fixture->step.decision_count;
         bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_TICK })) {
        assert_true(fixture->step.decision_count * COUNT <= BH_DECIDED_PARTITIONS_MAX);
        placed += fixture->step.decision_count;
    }
    assert_int_equal(placed, JOBS - 1);
    bh_fixture_close(fixture);
}

/* A record that was cut in the middle of a gang does not replay. */
static void
half_a_gang_is_a_damaged_journal(void **state)
{
    static struct bh_step step;
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_event event = { .kind = BH_EV_SUBMIT };
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_engine *before;

    before = bh_engine_grow(fixture->engine, bh_fixture_engine(&caps), &caps);
    event.u.submit = bh_fixture_submission(21, 3, 1);
    event.u.submit.gang = 2;
    event.u.submit.job.v = 1;
    event.u.submit.priority = BH_PRIORITY_NORMAL;
    bh_fixture_must_send(fixture, &event);
    assert_int_equal(bh_engine_replay(before, &event, fixture->step.decisions, 1, &step), BH_CONFLICT);
    free(before);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_largest_gang_fits_in_a_record),
    cmocka_unit_test(a_record_has_so_many_partitions),
    cmocka_unit_test(half_a_gang_is_a_damaged_journal),
};
BH_TEST_MAIN(tests)
