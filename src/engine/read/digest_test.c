#include "engine/read/digest.h"

#include "engine/step/fixture_test.h"

static void
any_change_changes_the_digest(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t before = bh_fixture_digest(fixture->engine), after;

    bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    after = bh_fixture_digest(fixture->engine);
    assert_true(after != before);
    bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    assert_true(bh_fixture_digest(fixture->engine) != after);
    bh_fixture_close(fixture);
}

static void
a_refused_event_does_not(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t before = bh_fixture_digest(fixture->engine);

    assert_int_equal(bh_fixture_try_submit(fixture, bh_fixture_submission(99, 1, 1)), BH_NOT_FOUND);
    assert_true(bh_fixture_digest(fixture->engine) == before);
    bh_fixture_close(fixture);
}

static void
capacities_do_not_show(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_engine *small = bh_fixture_engine(&caps), *large;

    caps.jobs *= 3;
    caps.tenants *= 2;
    large = bh_fixture_engine(&caps);
    assert_true(bh_fixture_digest(small) == bh_fixture_digest(large));
    free(small);
    free(large);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_change_changes_the_digest),
    cmocka_unit_test(a_refused_event_does_not),
    cmocka_unit_test(capacities_do_not_show),
};
BH_TEST_MAIN(tests)
