#include "engine/forecast/forecast_series.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

enum { ROWS = 256, SLOT_NS = 1000000000, LEARNT = 24 }; /* slots until all but a day is firm */

/* A site whose department 3 is guaranteed 2 of 4 GPUs, and its series. */
struct fixture_future {
    struct bh_fixture *fixture;
    struct bh_forecast_series series;
    struct bh_forecast_row rows[ROWS];
};

static struct fixture_future *
open_future(void)
{
    struct fixture_future *fixture_future = calloc(1, sizeof *fixture_future);

    assert_non_null(fixture_future);
    fixture_future->fixture = bh_fixture_site(4);
    bh_fixture_tenant(fixture_future->fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                                      .parent = { 1 },
                                                                      .kind = BH_TENANT_DEPARTMENT,
                                                                      .guarantee = 8400 });
    fixture_future->series =
        (struct bh_forecast_series){ .rows = fixture_future->rows, .max = ROWS, .slot_ns = SLOT_NS };
    assert_true(bh_forecast_series_needed(fixture_future->fixture->engine) <= ROWS);
    return fixture_future;
}

static void
close_future(struct fixture_future *fixture_future)
{
    bh_fixture_close(fixture_future->fixture);
    free(fixture_future);
}

static void
observe(struct fixture_future *fixture_future, uint32_t slots)
{
    for (uint32_t i = 0; i < slots; i++) {
        bh_fixture_tick(fixture_future->fixture, SLOT_NS);
        bh_forecast_series_observe(&fixture_future->series, fixture_future->fixture->engine,
                                   fixture_future->fixture->now_ns);
    }
}

static uint32_t
value_of(const struct fixture_future *fixture_future, enum bh_forecast_of of, uint32_t id)
{
    const struct bh_forecast_row *forecast_row = bh_forecast_series_find(&fixture_future->series, of, id);

    return forecast_row ? forecast_row->value : UINT32_MAX;
}

static void
series_test_use(struct fixture_future *fixture_future, enum bh_lending lending, bool hotspots, bool preshape)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(fixture_future->fixture->engine, &event.u.settings);
    event.u.settings.lending = lending;
    event.u.settings.hotspots = hotspots;
    event.u.settings.preshape = preshape;
    bh_fixture_must_send(fixture_future->fixture, &event);
}

/* Tell the engine all there is; how many events that took. */
static uint32_t
series_test_report(struct fixture_future *fixture_future)
{
    uint32_t cursor = 0, told = 0;
    struct bh_event event;

    while (
        bh_forecast_series_next(&fixture_future->series, fixture_future->fixture->engine, &cursor, &event)) {
        bh_fixture_must_send(fixture_future->fixture, &event);
        told++;
    }
    return told;
}

static void
what_is_used_and_waited_for_is_seen(void **state)
{
    struct fixture_future *fixture_future = open_future();
    uint32_t small = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
    struct bh_ev_submit held = bh_fixture_submission(31, 3, 1);

    held.hold = true;
    bh_fixture_submit_running(fixture_future->fixture, bh_fixture_submission(31, 3, 1));
    bh_fixture_submit_running(fixture_future->fixture, bh_fixture_submission(31, 1, 2));
    bh_fixture_submit_running(fixture_future->fixture, bh_fixture_submission(21, 3, 2));
    bh_fixture_submit(fixture_future->fixture, bh_fixture_submission(21, 3, 1)); /* has no room */
    bh_fixture_submit(fixture_future->fixture, held);
    observe(fixture_future, 1);
    BH_CHECK_EQ("its own project's", value_of(fixture_future, BH_FORECAST_OF_TENANT, 3), 4200 + 2 * 600);
    BH_CHECK_EQ("no guarantee, no series", value_of(fixture_future, BH_FORECAST_OF_TENANT, 2), UINT32_MAX);
    BH_CHECK_EQ("used and waiting", value_of(fixture_future, BH_FORECAST_OF_POOL, BH_GPU_H100_80GB),
                4 * 4200 + 2 * 600);
    BH_CHECK_EQ("pieces", value_of(fixture_future, BH_FORECAST_OF_PARTITIONS, small), 2);
    BH_CHECK_EQ("nothing waits on a node", value_of(fixture_future, BH_FORECAST_OF_NODE, 1), 3 * 4200 + 1200);
    BH_CHECK_DONE();
    close_future(fixture_future);
}

static void
who_is_gone_has_no_series(void **state)
{
    struct fixture_future *fixture_future = open_future();

    observe(fixture_future, 2);
    bh_fixture_tenant(
        fixture_future->fixture,
        (struct bh_ev_tenant){ .tenant = { 3 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT });
    observe(fixture_future, 1);
    assert_int_equal(value_of(fixture_future, BH_FORECAST_OF_TENANT, 3), UINT32_MAX);
    assert_int_equal(value_of(fixture_future, BH_FORECAST_OF_NODE, 1), 0); /* the others' rows stay whole */
    close_future(fixture_future);
}

/* Nothing is lent on a guess; once it is known that it never changes, the idle half is. */
static void
a_guarantee_is_lent_when_its_use_is_known(void **state)
{
    struct fixture_future *fixture_future = open_future();
    struct tenant *tenant;

    bh_fixture_submit_running(fixture_future->fixture, bh_fixture_submission(31, 3, 1));
    series_test_use(fixture_future, BH_LEND_FORECAST, false, false);
    observe(fixture_future, 1);
    tenant = tenant_at(fixture_future->fixture->engine, tenant_find(fixture_future->fixture->engine, 3));
    assert_int_equal(series_test_report(fixture_future), 1);
    assert_int_equal(tenant->expected, 8400);
    observe(fixture_future, LEARNT);
    assert_int_equal(series_test_report(fixture_future), 1);
    assert_int_equal(tenant->expected, 4200);
    observe(fixture_future, 1);
    assert_int_equal(series_test_report(fixture_future), 0); /* nothing new */
    close_future(fixture_future);
}

static void
nothing_is_sent_that_is_not_used(void **state)
{
    struct fixture_future *fixture_future = open_future();

    bh_fixture_submit_running(fixture_future->fixture, bh_fixture_submission(31, 3, 4));
    observe(fixture_future, LEARNT);
    assert_int_equal(series_test_report(fixture_future), 0);
    close_future(fixture_future);
}

static void
a_full_node_is_hot_and_cools(void **state)
{
    struct fixture_future *fixture_future = open_future();
    uint64_t job = bh_fixture_submit_running(fixture_future->fixture, bh_fixture_submission(21, 3, 4));
    struct node *node =
        node_at(fixture_future->fixture->engine, node_find(fixture_future->fixture->engine, 1));

    series_test_use(fixture_future, BH_LEND_ALL, true, false);
    observe(fixture_future, LEARNT);
    assert_int_equal(series_test_report(fixture_future), 1);
    assert_true(node->hot);
    bh_fixture_exit_job(fixture_future->fixture, job, 0);
    observe(fixture_future, 1);
    assert_int_equal(series_test_report(fixture_future), 1);
    assert_false(node->hot);
    close_future(fixture_future);
}

/* A small job now and then: one partition more than now is expected. */
static void
partitions_are_ready_for_what_comes_now_and_then(void **state)
{
    struct fixture_future *fixture_future = open_future();
    uint32_t small = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
    struct bh_event gone = { .kind = BH_EV_SKU_REMOVE, .u.sku.sku = { 1 } };
    const struct shapes *shapes = &fixture_future->fixture->engine->core.shapes;

    series_test_use(fixture_future, BH_LEND_ALL, false, true);
    observe(fixture_future, 1);
    assert_int_equal(series_test_report(fixture_future), 0); /* not on a guess */
    for (uint32_t i = 0; i < LEARNT; i++) {
        uint64_t job = bh_fixture_submit_running(fixture_future->fixture, bh_fixture_submission(21, 1, 1));

        observe(fixture_future, 3);
        bh_fixture_exit_job(fixture_future->fixture, job, 0);
        observe(fixture_future, 3);
    }
    assert_int_equal(series_test_report(fixture_future), 1);
    assert_int_equal(shapes->ready[small], 1);
    assert_int_equal(shapes->unheld[small], 1);
    bh_fixture_must_send(fixture_future->fixture, &gone);
    observe(fixture_future, 1);
    assert_int_equal(series_test_report(fixture_future), 1);
    assert_int_equal(shapes->ready[small], 0);
    close_future(fixture_future);
}

static void
pools_grow_and_shrink_by_nodes(void **state)
{
    struct fixture_future *fixture_future = open_future();
    struct bh_forecast_bound bounds[BH_FORECAST_HORIZONS];
    struct bh_headroom_pool pool;
    struct bh_headroom_scale scale;

    for (uint32_t i = 0; i < 5; i++)
        bh_fixture_submit(fixture_future->fixture, bh_fixture_submission(21, 3, 1));
    observe(fixture_future, LEARNT);
    for (uint32_t i = 0; i < BH_FORECAST_HORIZONS; i++)
        bounds[i] = bh_forecast_row_bound(
            bh_forecast_series_find(&fixture_future->series, BH_FORECAST_OF_POOL, BH_GPU_H100_80GB), i);
    pool = bh_forecast_series_pool(fixture_future->fixture->engine, BH_GPU_H100_80GB, bounds);
    assert_int_equal(pool.capacity, 4);
    assert_int_equal(pool.grain, 4);
    assert_int_equal(pool.least, 2);
    scale = bh_headroom_propose(&pool);
    assert_int_equal(scale.move, BH_HEADROOM_GROW);
    assert_int_equal(scale.wanted, 6); /* five, and 5 % */
    assert_int_equal(scale.gpus, 4);   /* a node */
    close_future(fixture_future);
}

static void
time_that_went_back_is_passed_over(void **state)
{
    struct fixture_future *fixture_future = open_future();
    struct bh_forecast_row before;

    observe(fixture_future, 5);
    before = fixture_future->rows[0];
    bh_forecast_series_observe(&fixture_future->series, fixture_future->fixture->engine,
                               fixture_future->fixture->now_ns - 3 * (uint64_t)SLOT_NS);
    assert_memory_equal(&before, &fixture_future->rows[0], sizeof before);
    close_future(fixture_future);
}

static void
rows_from_outside_are_looked_at(void **state)
{
    struct fixture_future *fixture_future = open_future();
    struct bh_forecast_row row;

    observe(fixture_future, 3);
    row = fixture_future->rows[0];
    BH_CHECK("a good one", bh_forecast_row_is_valid(&row, SLOT_NS));
    BH_CHECK("of another slot", !bh_forecast_row_is_valid(&row, SLOT_NS + 1));
    row.series.count = BH_FORECAST_SLOTS + 1;
    BH_CHECK("too long", !bh_forecast_row_is_valid(&row, SLOT_NS));
    row = fixture_future->rows[0];
    row.of = BH_FORECAST_OFS;
    BH_CHECK("of nothing", !bh_forecast_row_is_valid(&row, SLOT_NS));
    row = fixture_future->rows[0];
    row.series.promises[1].steps = 0;
    BH_CHECK("other promises", !bh_forecast_row_is_valid(&row, SLOT_NS));
    BH_CHECK_DONE();
    close_future(fixture_future);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_used_and_waited_for_is_seen),
    cmocka_unit_test(who_is_gone_has_no_series),
    cmocka_unit_test(a_guarantee_is_lent_when_its_use_is_known),
    cmocka_unit_test(nothing_is_sent_that_is_not_used),
    cmocka_unit_test(a_full_node_is_hot_and_cools),
    cmocka_unit_test(partitions_are_ready_for_what_comes_now_and_then),
    cmocka_unit_test(pools_grow_and_shrink_by_nodes),
    cmocka_unit_test(time_that_went_back_is_passed_over),
    cmocka_unit_test(rows_from_outside_are_looked_at),
};
BH_TEST_MAIN(tests)
