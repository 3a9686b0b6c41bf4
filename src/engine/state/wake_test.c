#include "engine/state/wake.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

static void
what_comes_free_wakes_the_tenant_and_all_above(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_engine *engine = fixture->engine;
    uint64_t before = engine->hints.changes;

    bh_wake_below(engine, tenant_find(engine, 21));
    assert_int_equal(engine->hints.changes, before + 1);
    assert_int_equal(bh_tenant_hint(engine, tenant_find(engine, 21))->changes, before + 1);
    assert_int_equal(bh_tenant_hint(engine, tenant_find(engine, 2))->changes, before + 1);
    assert_true(bh_tenant_hint(engine, tenant_find(engine, 31))->changes <= before);
    bh_wake_below(engine, 0);
    assert_int_equal(engine->hints.all_changes, before + 2);
    bh_fixture_close(fixture);
}

/* Only a window opens a claim again for those who have claimed as often as they may. */
static void
a_window_wakes_too(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct core *core = &fixture->engine->core;
    uint64_t generation = core->generation, window = core->window;

    bh_wake_queue(fixture->engine);
    assert_int_equal(core->generation, generation + 1);
    assert_int_equal(core->window, window);
    bh_wake_window(fixture->engine);
    assert_int_equal(core->generation, generation + 2);
    assert_int_equal(core->window, window + 1);
    bh_fixture_close(fixture);
}

/* Room that is taken is news only where a guarantee says something of it. */
static void
capacity_taken_helps_no_tenant_without_a_guarantee(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_engine *engine = fixture->engine;
    uint64_t generation = engine->core.generation;
    uint32_t tenant = tenant_find(engine, 21);

    bh_wake_after_taking(engine, tenant);
    assert_int_equal(engine->core.generation, generation);
    bh_fixture_tenant(fixture,
                      (struct bh_ev_tenant){
                          .tenant = { 2 }, .parent = { 1 }, .guarantee = 600, .kind = BH_TENANT_DEPARTMENT });
    generation = engine->core.generation;
    bh_wake_after_taking(engine, tenant);
    assert_int_equal(engine->core.generation, generation + 1);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_comes_free_wakes_the_tenant_and_all_above),
    cmocka_unit_test(a_window_wakes_too),
    cmocka_unit_test(capacity_taken_helps_no_tenant_without_a_guarantee),
};
BH_TEST_MAIN(tests)
