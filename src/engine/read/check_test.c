#include "engine/read/check.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* Each breaks one thing in a sound state: two jobs run, one waits. */
static void
held_twice(struct bh_engine *engine)
{
    lease_at(engine, 2)->parts[0] = lease_at(engine, 1)->parts[0];
}

static void
overlapping(struct bh_engine *engine)
{
    partition_at(engine, 1)->start = partition_at(engine, 2)->start;
}

static void
lost_usage(struct bh_engine *engine)
{
    tenant_at(engine, tenant_find(engine, 2))->used -= 1;
}

static void
lost_time(struct bh_engine *engine)
{
    metered_at(engine, metered_find(engine, 21))->compute_ns += 1;
}

static void
other_row(struct bh_engine *engine)
{
    tenant_at(engine, tenant_find(engine, 21))->metered = metered_find(engine, 31);
}

static void
stale_rate(struct bh_engine *engine)
{
    gpu_at(engine, 1)->unusable_compute += 1;
}

static void
broken_queue(struct bh_engine *engine)
{
    class_at(engine, class_at(engine, 1)->id ? 1 : 2)->jobs++;
}

static void
no_job(struct bh_engine *engine)
{
    job_at(engine, lease_at(engine, 1)->job)->lease = 0;
}

static void
too_close(struct bh_engine *engine)
{
    tenant_at(engine, tenant_find(engine, 3))->boundary = BH_BOUNDARY_FORTRESS;
}

static void
left_waiting(struct bh_engine *engine)
{
    class_at(engine, class_at(engine, 1)->id ? 1 : 2)->sku = sku_find(engine, 1);
}

static void
dirty_slot(struct bh_engine *engine)
{
    partition_at(engine, 0)->gpu = 1;
}

static void
lost_member(struct bh_engine *engine)
{
    lease_at(engine, job_at(engine, job_find(engine, 4))->lease)->next_member = 0;
}

static void
other_incarnation(struct bh_engine *engine)
{
    job_at(engine, job_find(engine, 4))->lease = 1;
}

static void
out_of_step(struct bh_engine *engine)
{
    lease_at(engine, job_at(engine, job_find(engine, 4))->lease)->state = LEASE_STOPPING;
}

static void
reserved_uncounted(struct bh_engine *engine)
{
    assert_true(gpu_at(engine, 1)->claimed > 0);
    gpu_at(engine, 1)->claimed--;
}

static void
reserved_nowhere(struct bh_engine *engine)
{
    engine->core.claims[0].placements[0].gpu = 99;
}

static void
counted_for_no_tenant(struct bh_engine *engine)
{
    assert_true(engine->core.claim_count == 1 && engine->core.reserved == 1);
    memset(engine->core.claims, 0, sizeof(engine->core.claims));
    engine->core.claim_count = engine->core.reserved = 0;
}

static void
whatever_is_broken_is_found(void **state)
{
    static const struct {
        const char *name;
        void (*sabotage)(struct bh_engine *engine);
        const char *text;
    } cases[] = {
        { "held twice", held_twice, "lease 2: its partition is not where it says" },
        { "overlapping", overlapping, "the geometry forbids it there" },
        { "usage", lost_usage, "tenant 2: its use is not that of its leases" },
        { "time", lost_time, "ledger 0: tenants' usage is not that of the GPUs" },
        { "rate", stale_rate, "gpu 1: its ledger rates are stale" },
        { "another's row", other_row, "tenant 21: its row of the ledger is another's" },
        { "queue", broken_queue, "its list is broken" },
        { "no job", no_job, "lease 1: has no job of its own" },
        { "too close", too_close, "stands closer than a boundary allows" },
        { "left waiting", left_waiting, "waits, though there is room for it" },
        { "lost member", lost_member, "job 4: does not hold its whole gang" },
        { "two incarnations", other_incarnation, "some belong to no gang" },
        { "out of step", out_of_step, "job 4: has members in states that do not go together" },
        { "room uncounted", reserved_uncounted, "gpu 1: what is kept on it is miscounted" },
        { "room on no GPU", reserved_nowhere, "gpu 99: what is kept on it is miscounted" },
        { "room of nobody", counted_for_no_tenant, "count room that is not kept" },
        { "a slot of zeroes", dirty_slot, "partition 0: slot 0 was written" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        char text[200] = "";

        bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
        bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1));
        bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
        bh_fixture_submit_running(
            fixture,
            (struct bh_ev_submit){ .tenant = { 21 }, .sku = { 1 }, .gang = 2, .priority = BH_PRIORITY_HIGH });
        BH_CHECK(cases[i].name, bh_engine_check(fixture->engine, text, sizeof(text)));
        cases[i].sabotage(fixture->engine);
        BH_CHECK(cases[i].name, !bh_engine_check(fixture->engine, text, sizeof(text)));
        if (!strstr(text, cases[i].text))
            BH_CHECK_STR(cases[i].name, text, cases[i].text);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
a_small_buffer_is_not_overrun(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    char text[8] = "1234567";

    stale_rate(fixture->engine);
    assert_false(bh_engine_check(fixture->engine, text, 5));
    assert_string_equal(text, "gpu ");
    assert_int_equal(text[5], '6');
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(whatever_is_broken_is_found),
    cmocka_unit_test(a_small_buffer_is_not_overrun),
};
BH_TEST_MAIN(tests)
