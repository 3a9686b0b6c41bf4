#include "engine/preempt/victim.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* Reading down: each row is dearer than the one before by one component alone. */
static void
costs_compare_by_what_matters_most(void **state)
{
    static const struct {
        const char *name;
        struct bh_cost cost;
    } rows[] = {
        { "nothing", { .owed = 9, .priority = 1, .lost = 5, .victims = 1, .began_ns = 7 } },
        { "breaks up", { .owed = 9, .priority = 1, .lost = 5, .victims = 1, .began_ns = 7, .growth = 1 } },
        { "id", { .owed = 9, .priority = 1, .lost = 5, .victims = 1, .began_ns = 7, .id = 1 } },
        { "older", { .owed = 9, .priority = 1, .lost = 5, .victims = 1, .began_ns = 6 } },
        { "more", { .owed = 9, .priority = 1, .lost = 5, .victims = 2, .began_ns = 9 } },
        { "work", { .owed = 9, .priority = 1, .lost = 6, .victims = 1, .began_ns = 9 } },
        { "class", { .owed = 9, .priority = 2, .began_ns = 9 } },
        { "borrows less", { .owed = 8, .began_ns = 9 } },
    };

    for (size_t i = 0; i + 1 < BH_COUNT(rows); i++) {
        BH_CHECK(rows[i].name, bh_cost_less(&rows[i].cost, &rows[i + 1].cost));
        BH_CHECK(rows[i].name, !bh_cost_less(&rows[i + 1].cost, &rows[i].cost));
    }
    BH_CHECK_DONE();
}

/* A whole GPU held by 21 for a second, and 31 asks for it. */
static void
the_contract_says_what_is_lost(void **state)
{
    static const struct {
        const char *name;
        enum bh_contract contract;
        uint64_t lost_ns;
    } rows[] = {
        { "suspend", BH_CONTRACT_SUSPEND, 0 },
        { "checkpoint", BH_CONTRACT_CHECKPOINT, 300 },
        { "requeue", BH_CONTRACT_REQUEUE, 1000000000 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_ev_submit submit = bh_fixture_submission(21, 3, 1);
        struct bh_search search = { .engine = fixture->engine };
        struct bh_wanted wanted;
        struct bh_preemptor preemptor;
        struct bh_cost cost;

        submit.contract = rows[i].contract;
        submit.grace_ns = 300;
        bh_fixture_submit_running(fixture, submit);
        bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1));
        bh_fixture_tick(fixture, 1000000000);
        wanted = (struct bh_wanted){ tenant_find(fixture->engine, 31), sku_find(fixture->engine, 3), 1,
                                     BH_GPU_PARTS };
        search.tenant = wanted.tenant;
        bh_preemptor_init(&preemptor, &search, job_find(fixture->engine, 2), &wanted);
        cost = bh_victim_cost(&preemptor, &search, job_find(fixture->engine, 1));
        BH_CHECK(rows[i].name, cost.lost == (bh_part_ns)rows[i].lost_ns * BH_GPU_PARTS);
        BH_CHECK(rows[i].name,
                 !bh_victim_eligible(&preemptor, &search, job_find(fixture->engine, 1))); /* the same class */
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(costs_compare_by_what_matters_most),
    cmocka_unit_test(the_contract_says_what_is_lost),
};
BH_TEST_MAIN(tests)
