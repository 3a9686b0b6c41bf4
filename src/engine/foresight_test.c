#include "engine/foresight.h"

#include "engine/slots.h"
#include "engine/story_test.h"

enum { ROWS = 256, SLOT_NS = 1000000000, LEARNT = 24 }; /* slots until all but a day is firm */

/* A site whose department 3 is guaranteed 2 of 4 GPUs, and its series. */
struct seer {
    struct bh_story *story;
    struct bh_foresight foresight;
    struct bh_sight rows[ROWS];
};

static struct seer *
open_seer(void)
{
    struct seer *seer = calloc(1, sizeof *seer);

    assert_non_null(seer);
    seer->story = bh_story_site(4);
    bh_story_tenant(seer->story, (struct bh_ev_tenant){ .tenant = { 3 }, .parent = { 1 },
                                                        .kind = BH_TENANT_DEPARTMENT,
                                                        .guarantee = 8400 });
    seer->foresight = (struct bh_foresight){ .rows = seer->rows, .max = ROWS,
                                             .slot_ns = SLOT_NS };
    assert_true(bh_foresight_needed(seer->story->engine) <= ROWS);
    return seer;
}

static void
close_seer(struct seer *seer)
{
    bh_story_close(seer->story);
    free(seer);
}

static void
observe(struct seer *seer, uint32_t slots)
{
    for (uint32_t i = 0; i < slots; i++) {
        bh_story_tick(seer->story, SLOT_NS);
        bh_foresight_observe(&seer->foresight, seer->story->engine, seer->story->now_ns);
    }
}

static uint32_t
value_of(const struct seer *seer, enum bh_sight_of of, uint32_t id)
{
    const struct bh_sight *sight = bh_foresight_find(&seer->foresight, of, id);

    return sight ? sight->value : UINT32_MAX;
}

static void
use(struct seer *seer, enum bh_lending lending, bool hotspots, bool preshape)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(seer->story->engine, &event.u.settings);
    event.u.settings.lending = lending;
    event.u.settings.hotspots = hotspots;
    event.u.settings.preshape = preshape;
    bh_story_must(seer->story, &event);
}

/* Tell the engine all there is; how many events that took. */
static uint32_t
tell(struct seer *seer)
{
    uint32_t cursor = 0, told = 0;
    struct bh_event event;

    while (bh_foresight_next(&seer->foresight, seer->story->engine, &cursor, &event)) {
        bh_story_must(seer->story, &event);
        told++;
    }
    return told;
}

static void
what_is_used_and_waited_for_is_seen(void **state)
{
    struct seer *seer = open_seer();
    uint32_t small = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
    struct bh_ev_submit held = bh_story_wants(31, 3, 1);

    held.hold = true;
    bh_story_run(seer->story, bh_story_wants(31, 3, 1));
    bh_story_run(seer->story, bh_story_wants(31, 1, 2));
    bh_story_run(seer->story, bh_story_wants(21, 3, 2));
    bh_story_submit(seer->story, bh_story_wants(21, 3, 1)); /* has no room */
    bh_story_submit(seer->story, held);
    observe(seer, 1);
    BH_CHECK_EQ("its own project's", value_of(seer, BH_SIGHT_TENANT, 3), 4200 + 2 * 600);
    BH_CHECK_EQ("no guarantee, no series", value_of(seer, BH_SIGHT_TENANT, 2), UINT32_MAX);
    BH_CHECK_EQ("used and waiting", value_of(seer, BH_SIGHT_POOL, BH_GPU_H100_80GB),
                4 * 4200 + 2 * 600);
    BH_CHECK_EQ("pieces", value_of(seer, BH_SIGHT_PIECES, small), 2);
    BH_CHECK_EQ("nothing waits on a node", value_of(seer, BH_SIGHT_NODE, 1), 3 * 4200 + 1200);
    BH_CHECK_DONE();
    close_seer(seer);
}

static void
who_is_gone_has_no_series(void **state)
{
    struct seer *seer = open_seer();

    observe(seer, 2);
    bh_story_tenant(seer->story, (struct bh_ev_tenant){ .tenant = { 3 }, .parent = { 1 },
                                                        .kind = BH_TENANT_DEPARTMENT });
    observe(seer, 1);
    assert_int_equal(value_of(seer, BH_SIGHT_TENANT, 3), UINT32_MAX);
    assert_int_equal(value_of(seer, BH_SIGHT_NODE, 1), 0); /* the others' rows stay whole */
    close_seer(seer);
}

/* Nothing is lent on a guess; once it is known that it never changes, the idle half is. */
static void
a_guarantee_is_lent_when_its_use_is_known(void **state)
{
    struct seer *seer = open_seer();
    struct tenant *tenant;

    bh_story_run(seer->story, bh_story_wants(31, 3, 1));
    use(seer, BH_LEND_FORECAST, false, false);
    observe(seer, 1);
    tenant = tenant_at(seer->story->engine, tenant_find(seer->story->engine, 3));
    assert_int_equal(tell(seer), 1);
    assert_int_equal(tenant->expected, 8400);
    observe(seer, LEARNT);
    assert_int_equal(tell(seer), 1);
    assert_int_equal(tenant->expected, 4200);
    observe(seer, 1);
    assert_int_equal(tell(seer), 0); /* nothing new */
    close_seer(seer);
}

static void
nothing_is_told_that_is_not_used(void **state)
{
    struct seer *seer = open_seer();

    bh_story_run(seer->story, bh_story_wants(31, 3, 4));
    observe(seer, LEARNT);
    assert_int_equal(tell(seer), 0);
    close_seer(seer);
}

static void
a_full_node_is_hot_and_cools(void **state)
{
    struct seer *seer = open_seer();
    uint64_t job = bh_story_run(seer->story, bh_story_wants(21, 3, 4));
    struct node *node = node_at(seer->story->engine, node_find(seer->story->engine, 1));

    use(seer, BH_LEND_ALL, true, false);
    observe(seer, LEARNT);
    assert_int_equal(tell(seer), 1);
    assert_true(node->hot);
    bh_story_exit(seer->story, job, 0);
    observe(seer, 1);
    assert_int_equal(tell(seer), 1);
    assert_false(node->hot);
    close_seer(seer);
}

/* A small job now and then: one piece more than now is expected. */
static void
pieces_are_ready_for_what_comes_now_and_then(void **state)
{
    struct seer *seer = open_seer();
    uint32_t small = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
    struct bh_event gone = { .kind = BH_EV_SKU_REMOVE, .u.sku.sku = { 1 } };
    const struct shapes *shapes = &seer->story->engine->core.shapes;

    use(seer, BH_LEND_ALL, false, true);
    observe(seer, 1);
    assert_int_equal(tell(seer), 0); /* not on a guess */
    for (uint32_t i = 0; i < LEARNT; i++) {
        uint64_t job = bh_story_run(seer->story, bh_story_wants(21, 1, 1));

        observe(seer, 3);
        bh_story_exit(seer->story, job, 0);
        observe(seer, 3);
    }
    assert_int_equal(tell(seer), 1);
    assert_int_equal(shapes->ready[small], 1);
    assert_int_equal(shapes->unheld[small], 1);
    bh_story_must(seer->story, &gone);
    observe(seer, 1);
    assert_int_equal(tell(seer), 1);
    assert_int_equal(shapes->ready[small], 0);
    close_seer(seer);
}

static void
pools_grow_and_shrink_by_nodes(void **state)
{
    struct seer *seer = open_seer();
    struct bh_forecast_bound bounds[BH_FORESIGHT_HORIZONS];
    struct bh_headroom_pool pool;
    struct bh_headroom_scale scale;

    for (uint32_t i = 0; i < 5; i++)
        bh_story_submit(seer->story, bh_story_wants(21, 3, 1));
    observe(seer, LEARNT);
    for (uint32_t i = 0; i < BH_FORESIGHT_HORIZONS; i++)
        bounds[i] = bh_sight_bound(
            bh_foresight_find(&seer->foresight, BH_SIGHT_POOL, BH_GPU_H100_80GB), i);
    pool = bh_foresight_pool(seer->story->engine, BH_GPU_H100_80GB, bounds);
    assert_int_equal(pool.capacity, 4);
    assert_int_equal(pool.grain, 4);
    assert_int_equal(pool.least, 2);
    scale = bh_headroom_propose(&pool);
    assert_int_equal(scale.move, BH_HEADROOM_GROW);
    assert_int_equal(scale.wanted, 6); /* five, and 5 % */
    assert_int_equal(scale.gpus, 4);   /* a node */
    close_seer(seer);
}

static void
time_that_went_back_is_passed_over(void **state)
{
    struct seer *seer = open_seer();
    struct bh_sight before;

    observe(seer, 5);
    before = seer->rows[0];
    bh_foresight_observe(&seer->foresight, seer->story->engine,
                         seer->story->now_ns - 3 * (uint64_t)SLOT_NS);
    assert_memory_equal(&before, &seer->rows[0], sizeof before);
    close_seer(seer);
}

static void
rows_from_outside_are_looked_at(void **state)
{
    struct seer *seer = open_seer();
    struct bh_sight row;

    observe(seer, 3);
    row = seer->rows[0];
    BH_CHECK("a good one", bh_sight_is_valid(&row, SLOT_NS));
    BH_CHECK("of another slot", !bh_sight_is_valid(&row, SLOT_NS + 1));
    row.series.count = BH_FORECAST_SLOTS + 1;
    BH_CHECK("too long", !bh_sight_is_valid(&row, SLOT_NS));
    row = seer->rows[0];
    row.of = BH_SIGHTS;
    BH_CHECK("of nothing", !bh_sight_is_valid(&row, SLOT_NS));
    row = seer->rows[0];
    row.series.promises[1].steps = 0;
    BH_CHECK("other promises", !bh_sight_is_valid(&row, SLOT_NS));
    BH_CHECK_DONE();
    close_seer(seer);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_used_and_waited_for_is_seen),
    cmocka_unit_test(who_is_gone_has_no_series),
    cmocka_unit_test(a_guarantee_is_lent_when_its_use_is_known),
    cmocka_unit_test(nothing_is_told_that_is_not_used),
    cmocka_unit_test(a_full_node_is_hot_and_cools),
    cmocka_unit_test(pieces_are_ready_for_what_comes_now_and_then),
    cmocka_unit_test(pools_grow_and_shrink_by_nodes),
    cmocka_unit_test(time_that_went_back_is_passed_over),
    cmocka_unit_test(rows_from_outside_are_looked_at),
};
BH_TEST_MAIN(tests)
