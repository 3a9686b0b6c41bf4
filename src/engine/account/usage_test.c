#include "engine/account/usage.h"

#include <math.h>

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

#define HOUR_NS UINT64_C(3600000000000)

static void
settle_on(struct bh_fixture *fixture, struct bh_ev_settings settings)
{
    bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_SETTINGS, .u.settings = settings });
}

static uint64_t
fair_of(const struct bh_fixture *fixture, uint32_t tenant)
{
    struct bh_tenant_view view;

    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ tenant }, fixture->now_ns, &view));
    return view.fair;
}

static void
weights_are_powers_of_two(void **state)
{
    for (uint32_t i = 0; i < BH_USAGE_STEPS; i++)
        assert_int_equal(bh_usage_weights[i], lround(65536 * exp2(i / 64.0)));
}

/* A GPU held for one half-life counts 1/ln 2 of it then, and half of that one later; a
 * step of the weight (1/64 of a half-life) is as exact as it is. */
static void
usage_fades_by_half(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job, whole;

    settle_on(fixture, (struct bh_ev_settings){ .half_life_ns = 24 * HOUR_NS });
    job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_tick(fixture, 24 * HOUR_NS);
    whole = fair_of(fixture, 21);
    assert_in_range(whole, 86400 * 0.98 * 0.7213, 86400 * 1.02 * 0.7213);
    bh_fixture_exit_job(fixture, job, 0);
    bh_fixture_tick(fixture, 24 * HOUR_NS);
    assert_in_range(fair_of(fixture, 21), whole / 2 - 1, whole / 2 + 1);
    assert_int_equal(fair_of(fixture, 2), fair_of(fixture, 21)); /* and all above */
    assert_int_equal(fair_of(fixture, 1), fair_of(fixture, 21));
    assert_int_equal(fair_of(fixture, 3), 0);
    bh_fixture_tick(fixture, 300 * 24 * HOUR_NS);
    assert_int_equal(fair_of(fixture, 21), 0);
    bh_fixture_close(fixture);
}

/* Sums do not depend on how often they were brought up to date. */
static void
looking_often_changes_nothing(void **state)
{
    struct bh_fixture *often = bh_fixture_site(1), *once = bh_fixture_site(1);

    bh_fixture_submit_running(often, bh_fixture_submission(21, 3, 1));
    bh_fixture_submit_running(once, bh_fixture_submission(21, 3, 1));
    for (uint32_t i = 0; i < 300; i++) {
        bh_fixture_tick(often, HOUR_NS + i * 1000000ull);
        bh_usage_update_all(often->engine);
        bh_usage_update_all(often->replica);
    }
    bh_fixture_tick(once, often->now_ns - once->now_ns);
    bh_usage_update_all(once->engine);
    for (uint32_t slot = 0; bh_slot_next(once->engine, TABLE_TENANT, &slot);)
        assert_memory_equal(&tenant_at(once->engine, slot)->fair, &tenant_at(often->engine, slot)->fair,
                            2 * sizeof(bh_part_ns));
    bh_fixture_close(often);
    bh_fixture_close(once);
}

static void
nothing_fades_with_an_unlimited_half_life(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    settle_on(fixture, (struct bh_ev_settings){ .half_life_ns = BH_UNLIMITED });
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_tick(fixture, 1000 * HOUR_NS);
    assert_int_equal(fair_of(fixture, 21), 3600000);
    bh_fixture_close(fixture);
}

/* One GPU, and two projects that each always want it. */
static void
shares_follow_weights(void **state)
{
    static const struct {
        const char *name;
        enum bh_queue_order order;
        uint32_t weight;      /* of project 21; that of 31 is 100 */
        uint32_t least, most; /* of 120 turns */
    } cases[] = {
        { "equal", BH_ORDER_FAIR_TREE, 100, 59, 61 },
        { "three to one", BH_ORDER_FAIR_TREE, 300, 88, 92 },
        { "one to three", BH_ORDER_FAIR_TREE, 33, 28, 32 },
        { "first come first served", BH_ORDER_FIFO, 300, 120, 120 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        uint64_t jobs[2][130];
        uint32_t next[2] = { 0, 0 };

        settle_on(fixture,
                  (struct bh_ev_settings){ .order = cases[i].order, .half_life_ns = 1000 * HOUR_NS });
        bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 2 },
                                                          .parent = { 1 },
                                                          .kind = BH_TENANT_DEPARTMENT,
                                                          .weight = cases[i].weight });
        for (uint32_t k = 0; k < 2; k++)
            for (uint32_t n = 0; n < 130; n++)
                jobs[k][n] = bh_fixture_submit(fixture, bh_fixture_submission(k ? 31 : 21, 3, 1));
        for (uint32_t turn = 0; turn < 120; turn++) {
            uint32_t who;

            bh_fixture_finish_effects(fixture);
            who = bh_fixture_state(fixture, jobs[1][next[1]]) == BH_JOB_RUNNING;
            BH_CHECK_EQ(cases[i].name, bh_fixture_state(fixture, jobs[who][next[who]]), BH_JOB_RUNNING);
            fixture->now_ns += HOUR_NS;
            bh_fixture_exit_job(fixture, jobs[who][next[who]++], 0);
        }
        BH_CHECK(cases[i].name, next[0] >= cases[i].least && next[0] <= cases[i].most);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
a_budget_holds_until_the_next_period(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_tenant settings = { .tenant = { 2 },
                                     .parent = { 1 },
                                     .kind = BH_TENANT_DEPARTMENT,
                                     .budget = { BH_PERIOD_DAY, 3600, BH_UNLIMITED } };
    uint64_t day_ns = bh_period_end_ns(BH_PERIOD_DAY, fixture->now_ns) + HOUR_NS, first, second;

    bh_fixture_tick(fixture, day_ns - fixture->now_ns);
    bh_fixture_tenant(fixture, settings);
    first = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_tick(fixture, HOUR_NS + 1);
    second = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING); /* what runs goes on */
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_why(fixture, second).code, BH_REASON_BUDGET);
    assert_int_equal(bh_fixture_why(fixture, second).frees_at_ns,
                     bh_period_end_ns(BH_PERIOD_DAY, fixture->now_ns));
    assert_int_equal(bh_engine_next_tick_ns(fixture->engine),
                     bh_period_end_ns(BH_PERIOD_DAY, fixture->now_ns));
    bh_fixture_exit_job(fixture, first, 0);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_PENDING);
    bh_fixture_tick(fixture, bh_engine_next_tick_ns(fixture->engine) - fixture->now_ns);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
money_is_spent_by_the_price(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_event price = { .kind = BH_EV_SKU };
    struct bh_tenant_view view;

    assert_true(bh_view_sku(fixture->engine, (bh_sku_id){ 1 }, &price.u.sku));
    price.u.sku.price = 250000; /* 0.25 an hour and partition */
    bh_fixture_must_send(fixture, &price);
    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 2 },
                                                      .parent = { 1 },
                                                      .kind = BH_TENANT_DEPARTMENT,
                                                      .budget = { BH_PERIOD_MONTH, BH_UNLIMITED, 1000000 } });
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 2));
    bh_fixture_tick(fixture, HOUR_NS);
    price.u.sku.price = 500000; /* dearer from now on, also for what runs */
    bh_fixture_must_send(fixture, &price);
    bh_fixture_tick(fixture, HOUR_NS / 2);
    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ 2 }, fixture->now_ns, &view));
    assert_in_range(view.spent_money, 999999, 1000000);
    bh_fixture_tick(fixture, 1000000000);
    assert_int_equal(
        bh_fixture_why(fixture, bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1))).code,
        BH_REASON_BUDGET_MONEY);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(weights_are_powers_of_two),
    cmocka_unit_test(usage_fades_by_half),
    cmocka_unit_test(looking_often_changes_nothing),
    cmocka_unit_test(nothing_fades_with_an_unlimited_half_life),
    cmocka_unit_test(shares_follow_weights),
    cmocka_unit_test(a_budget_holds_until_the_next_period),
    cmocka_unit_test(money_is_spent_by_the_price),
};
BH_TEST_MAIN(tests)
