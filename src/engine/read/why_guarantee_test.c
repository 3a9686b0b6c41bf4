#include "engine/read/why_guarantee.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

enum { OWN = 21, SIBLING = 22, WHOLE = 3 };

static void
put_tenants(struct bh_fixture *fixture, const struct bh_ev_tenant *own, const struct bh_ev_tenant *sibling,
            uint64_t shared)
{
    struct bh_ev_tenant tenants[] = {
        { .tenant = { 2 }, .parent = { 1 }, .guarantee = shared, .kind = BH_TENANT_DEPARTMENT },
        *own,
        *sibling
    };

    tenants[1].tenant.v = OWN;
    tenants[2].tenant.v = SIBLING;
    for (size_t i = 0; i < BH_COUNT(tenants); i++) {
        if (i > 0) {
            tenants[i].parent.v = 2;
            tenants[i].kind = BH_TENANT_PROJECT;
        }
        tenants[i].boundary = BH_BOUNDARY_NONE;
        bh_fixture_tenant(fixture, tenants[i]);
    }
}

static void
why_guarantee_test_fill(struct bh_fixture *fixture, uint32_t tenant, uint32_t count,
                        enum bh_contract contract)
{
    struct bh_ev_submit job = bh_fixture_submission(tenant, WHOLE, 1);

    job.contract = contract;
    for (uint32_t i = 0; i < count; i++)
        bh_fixture_submit_running(fixture, job);
}

/* Four GPUs, all held by the sibling, and a pending job that wants one more than the guarantee. */
static void
each_cause_is_named(void **state)
{
    static const struct {
        const char *name;
        struct bh_ev_tenant own, sibling;
        uint64_t shared;
        uint32_t held; /* by its own tenant */
        enum bh_contract contract;
        struct bh_guarantee_reason want;
    } cases[] = {
        { "nothing is guaranteed", .contract = BH_CONTRACT_REQUEUE },
        { "shared, and used up by the sibling", .contract = BH_CONTRACT_REQUEUE, .shared = 16800,
          .want = { BH_GUARANTEE_USED, { 2 }, true, 16800, 16800, 4200, 0 } },
        { "shared, with room", .contract = BH_CONTRACT_REQUEUE, .shared = 21000,
          .want = { BH_GUARANTEE_NO_BORROWER, { 2 }, true, 21000, 16800, 4200, 0 } },
        { "its own, used up", .contract = BH_CONTRACT_REQUEUE, .own = { .guarantee = 4200 }, .held = 1,
          .want = { BH_GUARANTEE_USED, { OWN }, false, 4200, 4200, 4200, 0 } },
        { "the sibling is within his", .contract = BH_CONTRACT_REQUEUE, .own = { .guarantee = 4200 },
          .sibling = { .guarantee = 16800 },
          .want = { BH_GUARANTEE_NO_BORROWER, { OWN }, false, 4200, 0, 4200, 0 } },
        { "the sibling's jobs never make way", .contract = BH_CONTRACT_NEVER, .own = { .guarantee = 4200 },
          .want = { BH_GUARANTEE_NEVER, { OWN }, false, 4200, 0, 4200, 0 } },
        { "they are too young", .contract = BH_CONTRACT_REQUEUE, .own = { .guarantee = 4200 },
          .sibling = { .min_runtime_ns = 600000000000 },
          .want = { BH_GUARANTEE_YOUNG, { OWN }, false, 4200, 0, 4200, 0 } },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(4);
        struct bh_guarantee_reason got;
        uint64_t job;

        put_tenants(fixture, &cases[i].own, &cases[i].sibling, cases[i].shared);
        why_guarantee_test_fill(fixture, OWN, cases[i].held, BH_CONTRACT_NEVER);
        why_guarantee_test_fill(fixture, SIBLING, 4 - cases[i].held, cases[i].contract);
        job = bh_fixture_submit(fixture, bh_fixture_submission(OWN, WHOLE, 1));
        got = bh_fixture_why(fixture, job).guarantee;
        BH_CHECK_EQ(cases[i].name, got.cause, cases[i].want.cause);
        BH_CHECK_EQ(cases[i].name, got.tenant.v, cases[i].want.tenant.v);
        BH_CHECK_EQ(cases[i].name, got.shared, cases[i].want.shared);
        BH_CHECK_EQ(cases[i].name, got.limit, cases[i].want.limit);
        BH_CHECK_EQ(cases[i].name, got.used, cases[i].want.used);
        BH_CHECK_EQ(cases[i].name, got.wanted, cases[i].want.wanted);
        BH_CHECK_EQ(cases[i].name, got.until_ns > fixture->now_ns, got.cause == BH_GUARANTEE_YOUNG);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* Of the one GPU a half could be taken back, and the other never. */
static void
what_would_not_be_enough_is_named(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit stays = bh_fixture_submission(SIBLING, 2, 1), half = stays;
    struct bh_ev_tenant own = { .guarantee = 4200 }, none = { .guarantee = 0 };
    uint64_t job;

    put_tenants(fixture, &own, &none, 0);
    stays.contract = BH_CONTRACT_NEVER;
    half.contract = BH_CONTRACT_REQUEUE;
    bh_fixture_submit_running(fixture, stays);
    bh_fixture_submit_running(fixture, half);
    job = bh_fixture_submit(fixture, bh_fixture_submission(OWN, WHOLE, 1));
    assert_int_equal(bh_fixture_why(fixture, job).guarantee.cause, BH_GUARANTEE_TOO_LITTLE);
    bh_fixture_close(fixture);
}

/* One GPU, held by the sibling, that is reset once the sibling has left it. */
static void
what_waits_for_a_reset_is_named(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_tenant own = { .guarantee = 4200 }, none = { .guarantee = 0 };
    uint64_t job;

    put_tenants(fixture, &own, &none, 0);
    why_guarantee_test_fill(fixture, SIBLING, 1, BH_CONTRACT_REQUEUE);
    bh_fixture_must_send(
        fixture,
        &(struct bh_event){
            .kind = BH_EV_HEALTH,
            .u.health = { .gpu = { 1 }, .ends = BH_ENDS_NOBODY, .then = BH_THEN_RESET_IDLE, .xid = 63 } });
    job = bh_fixture_submit(fixture, bh_fixture_submission(OWN, WHOLE, 1));
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_why(fixture, job).guarantee.cause, BH_GUARANTEE_RESET);
    bh_fixture_close(fixture);
}

/* Another job of the tenant has capacity freed: the next job that asks uses it. */
static void
what_is_being_freed_is_used(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(4);
    struct bh_ev_tenant own = { .guarantee = 4200 }, none = { .guarantee = 0 };
    struct bh_guarantee_reason why;
    uint64_t first, second;

    put_tenants(fixture, &own, &none, 0);
    why_guarantee_test_fill(fixture, SIBLING, 4, BH_CONTRACT_REQUEUE);
    first = bh_fixture_submit(fixture, bh_fixture_submission(OWN, WHOLE, 1));
    assert_int_equal(bh_fixture_why(fixture, first).code, BH_REASON_PREEMPTING);
    second = bh_fixture_submit(fixture, bh_fixture_submission(OWN, WHOLE, 1));
    why = bh_fixture_why(fixture, second).guarantee;
    assert_int_equal(why.cause, BH_GUARANTEE_USED);
    assert_int_equal(why.limit, 4200);
    assert_int_equal(why.used, 4200);
    assert_int_equal(why.coming, 4200);
    bh_fixture_finish_effects(fixture);
    why = bh_fixture_why(fixture, second).guarantee;
    assert_int_equal(why.cause, BH_GUARANTEE_USED);
    assert_int_equal(why.used, 4200);
    assert_int_equal(why.coming, 0);
    bh_fixture_close(fixture);
}

/* Its claim was taken from it, for the GPU gets no more work: it claims again a little later. */
static void
a_pause_is_no_cause(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_tenant own = { .guarantee = 4200 }, none = { .guarantee = 0 };
    struct bh_event cordon = { .kind = BH_EV_CORDON };
    uint64_t job;

    put_tenants(fixture, &own, &none, 0);
    why_guarantee_test_fill(fixture, SIBLING, 2, BH_CONTRACT_REQUEUE);
    job = bh_fixture_submit(fixture, bh_fixture_submission(OWN, WHOLE, 1));
    assert_int_equal(fixture->step.decisions[0].kind, BH_DO_CLAIM);
    cordon.u.cordon = (struct bh_ev_cordon){ .gpu = fixture->step.decisions[0].partitions[0].gpu,
                                             .held = BH_HELD_CORDONED };
    bh_fixture_must_send(fixture, &cordon);
    assert_int_equal(fixture->step.decisions[0].kind, BH_DO_UNCLAIM);
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_NO_CAPACITY);
    assert_int_equal(bh_fixture_why(fixture, job).guarantee.cause, BH_GUARANTEE_NO_CAUSE);
    bh_fixture_tick(fixture, UINT64_C(10000000000));
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_PREEMPTING);
    bh_fixture_close(fixture);
}

/* The tenant's own limit has no room, whatever others hold: no guarantee helps. */
static void
its_own_limit_is_no_matter_of_guarantees(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_tenant own = { .guarantee = 8400, .limit = 4200 }, none = { .guarantee = 0 };
    uint64_t job;

    put_tenants(fixture, &own, &none, 0);
    bh_fixture_submit_running(fixture, bh_fixture_submission(OWN, WHOLE, 1));
    job = bh_fixture_submit(fixture, bh_fixture_submission(OWN, WHOLE, 1));
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_QUOTA_GPU);
    assert_int_equal(bh_fixture_why(fixture, job).guarantee.cause, BH_GUARANTEE_NO_CAUSE);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_cause_is_named),
    cmocka_unit_test(what_would_not_be_enough_is_named),
    cmocka_unit_test(what_waits_for_a_reset_is_named),
    cmocka_unit_test(what_is_being_freed_is_used),
    cmocka_unit_test(a_pause_is_no_cause),
    cmocka_unit_test(its_own_limit_is_no_matter_of_guarantees),
};
BH_TEST_MAIN(tests)
