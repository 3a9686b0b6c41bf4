#include "engine/state/lease_time.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

static const uint64_t hour_ns = UINT64_C(3600000000000);

static uint32_t
lease_time_test_lease(const struct bh_fixture *fixture, uint64_t job)
{
    return job_at(fixture->engine, job_find(fixture->engine, job))->lease;
}

static void
a_time_limit_counts_from_the_start(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit limited = bh_fixture_submission(21, 1, 1);
    uint64_t began_ns;
    uint32_t lease;

    limited.time_limit_ns = 2 * hour_ns;
    lease = lease_time_test_lease(fixture, bh_fixture_submit_running(fixture, limited));
    began_ns = fixture->now_ns;
    bh_fixture_tick(fixture, hour_ns);
    assert_int_equal(bh_lease_ran_ns(fixture->engine, lease), hour_ns);
    assert_int_equal(bh_lease_deadline_ns(fixture->engine, lease), began_ns + 2 * hour_ns);
    assert_int_equal(bh_lease_ends_ns(fixture->engine, lease), began_ns + 2 * hour_ns);
    bh_fixture_close(fixture);
}

/* Without a limit its end is assumed, each time anew when that is over. */
static void
without_a_limit_the_end_is_assumed(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t assumed_ns = fixture->engine->core.settings.assumed_run_ns, began_ns;
    uint32_t lease;

    lease =
        lease_time_test_lease(fixture, bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)));
    began_ns = fixture->now_ns;
    assert_true(bh_lease_deadline_ns(fixture->engine, lease) == UINT64_MAX);
    assert_int_equal(bh_lease_ends_ns(fixture->engine, lease), began_ns + assumed_ns);
    bh_fixture_tick(fixture, assumed_ns + 1);
    assert_int_equal(bh_lease_ends_ns(fixture->engine, lease), began_ns + 2 * assumed_ns);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_time_limit_counts_from_the_start),
    cmocka_unit_test(without_a_limit_the_end_is_assumed),
};
BH_TEST_MAIN(tests)
