#include "engine/preempt/bound.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* Two GPUs, held for 3 s and for 1 s by low jobs; the bound of an urgent job for one and for
 * both whole GPUs, and for one that stays. */
static void
whole_gpus_cost_what_stands_on_them(void **state)
{
    static const struct {
        const char *name;
        uint32_t count;
        enum bh_contract contract; /* of the younger */
        bool possible;
        uint64_t lost_ns;
        uint32_t victims;
    } rows[] = {
        { "one", 1, BH_CONTRACT_REQUEUE, true, 1000000000, 1 },
        { "both", 2, BH_CONTRACT_REQUEUE, true, 4000000000, 2 },
        { "the other", 1, BH_CONTRACT_NEVER, true, 3000000000, 1 },
        { "never both", 2, BH_CONTRACT_NEVER, false, 0, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_fixture *fixture = bh_fixture_site(2);
        struct bh_ev_submit low = bh_fixture_submission(21, 3, 1);
        struct bh_search search = { .engine = fixture->engine, .past_leaving = true };
        struct bh_cost bound = { 0 };
        struct bh_preemptor preemptor;
        struct bh_wanted wanted;
        struct bh_need need;
        struct bh_bound_request request = { &preemptor, &search, &need, 0 };
        bool possible;

        low.priority = BH_PRIORITY_LOW;
        bh_fixture_submit_running(fixture, low);
        fixture->now_ns += 2000000000;
        low.contract = rows[i].contract;
        bh_fixture_submit_running(fixture, low);
        bh_fixture_tick(fixture, 1000000000);
        wanted = (struct bh_wanted){ tenant_find(fixture->engine, 31), sku_find(fixture->engine, 3),
                                     rows[i].count, rows[i].count * BH_GPU_PARTS, .model = 0 };
        need = (struct bh_need){ wanted.tenant, wanted.sku, 0, wanted.count, 1, 0 };
        search.tenant = wanted.tenant;
        bh_preemptor_init(&preemptor, &search, 0, &wanted);
        preemptor.priority = BH_PRIORITY_URGENT;
        possible = bh_bound(&request, 1, &bound);
        BH_CHECK_EQ(rows[i].name, possible, rows[i].possible);
        if (possible) {
            BH_CHECK(rows[i].name, bound.lost == (bh_part_ns)rows[i].lost_ns * BH_GPU_PARTS);
            BH_CHECK_EQ(rows[i].name, bound.victims, rows[i].victims);
        }
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(whole_gpus_cost_what_stands_on_them),
};
BH_TEST_MAIN(tests)
