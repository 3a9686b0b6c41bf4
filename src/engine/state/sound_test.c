#include "engine/state/sound.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* A site with a job that runs, two that wait, of which one has room kept for it. */
static struct bh_fixture *
busy(void)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit whole = bh_fixture_submission(21, 3, 1);

    whole.time_limit_ns = UINT64_C(3600000000000);
    bh_fixture_submit_running(fixture, whole);
    bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 2));
    bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 2));
    return fixture;
}

static bool
all_sound(const struct bh_engine *engine)
{
    uint64_t slot;

    return bh_sound_broken(engine, &slot) == NULL;
}

static void
every_row_of_a_history_is_sound(void **state)
{
    struct bh_fixture *fixture = busy();

    assert_int_equal(fixture->engine->core.reserved, 1);
    assert_true(all_sound(fixture->engine));
    bh_fixture_tick(fixture, UINT64_C(3600000000000));
    bh_fixture_finish_effects(fixture);
    assert_true(all_sound(fixture->engine));
    bh_fixture_close(fixture);
}

static void
a_spoilt_row_is_not(void **state)
{
    struct bh_fixture *fixture = busy();
    struct bh_engine *engine = fixture->engine;
    uint8_t *const spoilt[] = {
        &lease_at(engine, 1)->state, &partition_at(engine, 1)->state, &gpu_at(engine, 1)->fenced,
        &job_at(engine, 2)->gang,    &class_at(engine, 1)->count,     &node_at(engine, 1)->held,
        &tenant_at(engine, 1)->kind,
    };

    for (size_t i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
        *spoilt[i] ^= 0x40;
        assert_false(all_sound(engine));
        *spoilt[i] ^= 0x40;
    }
    engine->core.reserved++;
    engine->core.claim_count++;
    assert_true(all_sound(engine)); /* that takes adding up */
    engine->core.claim_count--;
    assert_false(all_sound(engine));
    engine->core.reserved--;
    assert_true(all_sound(engine));
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_row_of_a_history_is_sound),
    cmocka_unit_test(a_spoilt_row_is_not),
};
BH_TEST_MAIN(tests)
