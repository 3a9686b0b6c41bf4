#include "engine/step/engine.h"

#include "engine/step/fixture_test.h"

static void
a_snapshot_is_adopted_and_goes_on(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_engine_caps caps = bh_engine_caps(fixture->engine);
    size_t size = bh_engine_size(&caps);
    struct bh_engine *copy = bh_fixture_engine(&caps);

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    memcpy(copy, fixture->engine, size);
    assert_ptr_equal(bh_engine_adopt(copy, size), copy);
    assert_true(bh_fixture_digest(copy) == bh_fixture_digest(fixture->engine));
    free(fixture->engine);
    fixture->engine = copy;
    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1));
    bh_fixture_close(fixture);
}

static void
foreign_bytes_are_not_adopted(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    size_t size = bh_engine_size(&caps);
    struct bh_engine *engine = bh_fixture_engine(&caps);
    unsigned char *bytes = (unsigned char *)engine;

    assert_non_null(bh_engine_adopt(engine, size));
    assert_null(bh_engine_adopt(engine, size - 1));
    assert_null(bh_engine_adopt(engine, 8));
    for (size_t at = 0; at < 24; at++) { /* magic, length, layout version */
        if (at >= 20)
            continue; /* reserved */
        bytes[at] ^= 0x40;
        assert_null(bh_engine_adopt(engine, size));
        bytes[at] ^= 0x40;
    }
    assert_non_null(bh_engine_adopt(engine, size));
    free(engine);
}

static void
a_full_table_is_named_and_growing_helps(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT, wanted;
    struct bh_fixture *fixture;
    struct bh_engine *larger;

    caps.jobs = 2;
    fixture = bh_fixture_open_with(&caps);
    bh_fixture_sku(fixture, 1, "1g.10gb");
    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 1 } });
    bh_fixture_submit(fixture, bh_fixture_submission(1, 1, 1));
    bh_fixture_submit(fixture, bh_fixture_submission(1, 1, 1));
    assert_int_equal(bh_fixture_try_submit(fixture, bh_fixture_submission(1, 1, 1)), BH_FULL);
    assert_int_equal(fixture->step.verdict.code, BH_REASON_TABLE_FULL);
    wanted = bh_engine_wanted(fixture->engine);
    assert_int_equal(wanted.jobs, 4);
    assert_int_equal(wanted.leases, caps.leases);
    larger = bh_engine_grow(fixture->engine, calloc(1, bh_engine_size(&wanted)), &wanted);
    assert_true(bh_fixture_digest(larger) == bh_fixture_digest(fixture->engine));
    free(fixture->engine);
    fixture->engine = larger;
    bh_fixture_submit(fixture, bh_fixture_submission(1, 1, 1));
    bh_fixture_close(fixture);
}

static void
a_job_that_ended_gives_its_slot_to_the_next(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_fixture *fixture;

    caps.jobs = 1;
    fixture = bh_fixture_open_with(&caps);
    bh_fixture_sku(fixture, 1, "1g.10gb");
    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 1 } });
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(
            bh_fixture_cancel(fixture, bh_fixture_submit(fixture, bh_fixture_submission(1, 1, 1))), BH_OK);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_snapshot_is_adopted_and_goes_on),
    cmocka_unit_test(foreign_bytes_are_not_adopted),
    cmocka_unit_test(a_full_table_is_named_and_growing_helps),
    cmocka_unit_test(a_job_that_ended_gives_its_slot_to_the_next),
};
BH_TEST_MAIN(tests)
