#include "engine/why_guarantee.h"

#include "base/attr.h"
#include "engine/story_test.h"

enum { OWN = 21, SIBLING = 22, WHOLE = 3 };

static void
put_tenants(struct bh_story *story, const struct bh_ev_tenant *own,
            const struct bh_ev_tenant *sibling, uint64_t shared)
{
    struct bh_ev_tenant tenants[] = { { .tenant = { 2 }, .parent = { 1 }, .guarantee = shared,
                                        .kind = BH_TENANT_DEPARTMENT },
                                      *own, *sibling };

    tenants[1].tenant.v = OWN;
    tenants[2].tenant.v = SIBLING;
    for (size_t i = 0; i < BH_COUNT(tenants); i++) {
        if (i > 0) {
            tenants[i].parent.v = 2;
            tenants[i].kind = BH_TENANT_PROJECT;
        }
        tenants[i].boundary = BH_BOUNDARY_NONE;
        bh_story_tenant(story, tenants[i]);
    }
}

static void
fill(struct bh_story *story, uint32_t tenant, uint32_t count, enum bh_contract contract)
{
    struct bh_ev_submit job = bh_story_wants(tenant, WHOLE, 1);

    job.contract = contract;
    for (uint32_t i = 0; i < count; i++)
        bh_story_run(story, job);
}

/* Four GPUs, all held by the sibling, and one who waits for one more than he has. */
static void
each_cause_is_told(void **state)
{
    static const struct {
        const char *name;
        struct bh_ev_tenant own, sibling;
        uint64_t shared;
        uint32_t held;      /* by its own tenant */
        enum bh_contract contract;
        struct bh_guarantee_reason want;
    } cases[] = {
        { "nothing is guaranteed", .contract = BH_CONTRACT_REQUEUE },
        { "shared, and used up by the sibling", .contract = BH_CONTRACT_REQUEUE, .shared = 16800,
          .want = { BH_GUARANTEE_USED, { 2 }, true, 16800, 16800, 4200, 0 } },
        { "shared, with room", .contract = BH_CONTRACT_REQUEUE, .shared = 21000,
          .want = { BH_GUARANTEE_NOBODY, { 2 }, true, 21000, 16800, 4200, 0 } },
        { "its own, used up", .contract = BH_CONTRACT_REQUEUE, .own = { .guarantee = 4200 },
          .held = 1, .want = { BH_GUARANTEE_USED, { OWN }, false, 4200, 4200, 4200, 0 } },
        { "the sibling is within his", .contract = BH_CONTRACT_REQUEUE,
          .own = { .guarantee = 4200 }, .sibling = { .guarantee = 16800 },
          .want = { BH_GUARANTEE_NOBODY, { OWN }, false, 4200, 0, 4200, 0 } },
        { "the sibling's jobs never make way", .contract = BH_CONTRACT_NEVER,
          .own = { .guarantee = 4200 },
          .want = { BH_GUARANTEE_NEVER, { OWN }, false, 4200, 0, 4200, 0 } },
        { "they are too young", .contract = BH_CONTRACT_REQUEUE, .own = { .guarantee = 4200 },
          .sibling = { .min_runtime_ns = 600000000000 },
          .want = { BH_GUARANTEE_YOUNG, { OWN }, false, 4200, 0, 4200, 0 } },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_story *story = bh_story_site(4);
        struct bh_guarantee_reason got;
        uint64_t job;

        put_tenants(story, &cases[i].own, &cases[i].sibling, cases[i].shared);
        fill(story, OWN, cases[i].held, BH_CONTRACT_NEVER);
        fill(story, SIBLING, 4 - cases[i].held, cases[i].contract);
        job = bh_story_submit(story, bh_story_wants(OWN, WHOLE, 1));
        got = bh_story_why(story, job).guarantee;
        BH_CHECK_EQ(cases[i].name, got.cause, cases[i].want.cause);
        BH_CHECK_EQ(cases[i].name, got.tenant.v, cases[i].want.tenant.v);
        BH_CHECK_EQ(cases[i].name, got.shared, cases[i].want.shared);
        BH_CHECK_EQ(cases[i].name, got.limit, cases[i].want.limit);
        BH_CHECK_EQ(cases[i].name, got.used, cases[i].want.used);
        BH_CHECK_EQ(cases[i].name, got.wanted, cases[i].want.wanted);
        BH_CHECK_EQ(cases[i].name, got.until_ns > story->now_ns, got.cause == BH_GUARANTEE_YOUNG);
        bh_story_close(story);
    }
    BH_CHECK_DONE();
}

/* Of the one GPU a half could be taken back, and the other never. */
static void
what_would_not_be_enough_is_told(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_submit stays = bh_story_wants(SIBLING, 2, 1), half = stays;
    struct bh_ev_tenant own = { .guarantee = 4200 }, none = { .guarantee = 0 };
    uint64_t job;

    put_tenants(story, &own, &none, 0);
    stays.contract = BH_CONTRACT_NEVER;
    half.contract = BH_CONTRACT_REQUEUE;
    bh_story_run(story, stays);
    bh_story_run(story, half);
    job = bh_story_submit(story, bh_story_wants(OWN, WHOLE, 1));
    assert_int_equal(bh_story_why(story, job).guarantee.cause, BH_GUARANTEE_TOO_LITTLE);
    bh_story_close(story);
}

/* One GPU, held by the sibling, that is reset once he has left it. */
static void
what_waits_for_a_reset_is_told(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_tenant own = { .guarantee = 4200 }, none = { .guarantee = 0 };
    uint64_t job;

    put_tenants(story, &own, &none, 0);
    fill(story, SIBLING, 1, BH_CONTRACT_REQUEUE);
    bh_story_must(story, &(struct bh_event){ .kind = BH_EV_HEALTH,
                                             .u.health = { .gpu = { 1 },
                                                           .ends = BH_ENDS_NOBODY,
                                                           .then = BH_THEN_RESET_IDLE,
                                                           .xid = 63 } });
    job = bh_story_submit(story, bh_story_wants(OWN, WHOLE, 1));
    assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
    assert_int_equal(bh_story_why(story, job).guarantee.cause, BH_GUARANTEE_RESET);
    bh_story_close(story);
}

/* Another job of the tenant is having room made: that is used for whoever asks next. */
static void
what_is_being_freed_is_used(void **state)
{
    struct bh_story *story = bh_story_site(4);
    struct bh_ev_tenant own = { .guarantee = 4200 }, none = { .guarantee = 0 };
    struct bh_guarantee_reason why;
    uint64_t first, second;

    put_tenants(story, &own, &none, 0);
    fill(story, SIBLING, 4, BH_CONTRACT_REQUEUE);
    first = bh_story_submit(story, bh_story_wants(OWN, WHOLE, 1));
    assert_int_equal(bh_story_why(story, first).code, BH_REASON_MAKING_ROOM);
    second = bh_story_submit(story, bh_story_wants(OWN, WHOLE, 1));
    why = bh_story_why(story, second).guarantee;
    assert_int_equal(why.cause, BH_GUARANTEE_USED);
    assert_int_equal(why.limit, 4200);
    assert_int_equal(why.used, 4200);
    assert_int_equal(why.coming, 4200);
    bh_story_settle(story);
    why = bh_story_why(story, second).guarantee;
    assert_int_equal(why.cause, BH_GUARANTEE_USED);
    assert_int_equal(why.used, 4200);
    assert_int_equal(why.coming, 0);
    bh_story_close(story);
}

/* Its claim was taken from it, for the GPU gets no more work: it claims again a little later. */
static void
a_pause_is_no_cause(void **state)
{
    struct bh_story *story = bh_story_site(2);
    struct bh_ev_tenant own = { .guarantee = 4200 }, none = { .guarantee = 0 };
    struct bh_event cordon = { .kind = BH_EV_CORDON };
    uint64_t job;

    put_tenants(story, &own, &none, 0);
    fill(story, SIBLING, 2, BH_CONTRACT_REQUEUE);
    job = bh_story_submit(story, bh_story_wants(OWN, WHOLE, 1));
    assert_int_equal(story->step.decisions[0].kind, BH_DO_CLAIM);
    cordon.u.cordon = (struct bh_ev_cordon){ .gpu = story->step.decisions[0].pieces[0].gpu,
                                             .held = BH_HELD_CORDONED };
    bh_story_must(story, &cordon);
    assert_int_equal(story->step.decisions[0].kind, BH_DO_UNCLAIM);
    assert_int_equal(bh_story_why(story, job).code, BH_REASON_NO_CAPACITY);
    assert_int_equal(bh_story_why(story, job).guarantee.cause, BH_GUARANTEE_UNTOLD);
    bh_story_tick(story, UINT64_C(10000000000));
    assert_int_equal(bh_story_why(story, job).code, BH_REASON_MAKING_ROOM);
    bh_story_close(story);
}

/* Of its own limit nobody else has any: no guarantee helps. */
static void
its_own_limit_is_no_matter_of_guarantees(void **state)
{
    struct bh_story *story = bh_story_site(2);
    struct bh_ev_tenant own = { .guarantee = 8400, .limit = 4200 }, none = { .guarantee = 0 };
    uint64_t job;

    put_tenants(story, &own, &none, 0);
    bh_story_run(story, bh_story_wants(OWN, WHOLE, 1));
    job = bh_story_submit(story, bh_story_wants(OWN, WHOLE, 1));
    assert_int_equal(bh_story_why(story, job).code, BH_REASON_QUOTA_GPU);
    assert_int_equal(bh_story_why(story, job).guarantee.cause, BH_GUARANTEE_UNTOLD);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_cause_is_told),
    cmocka_unit_test(what_would_not_be_enough_is_told),
    cmocka_unit_test(what_waits_for_a_reset_is_told),
    cmocka_unit_test(what_is_being_freed_is_used),
    cmocka_unit_test(a_pause_is_no_cause),
    cmocka_unit_test(its_own_limit_is_no_matter_of_guarantees),
};
BH_TEST_MAIN(tests)
