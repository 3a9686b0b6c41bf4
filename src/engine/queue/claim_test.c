#include "engine/queue/claim.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* A job that preempts another has a claim on its GPU; without it any job may have the GPU. */
static void
what_is_dropped_is_free(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit low = bh_fixture_submission(21, 3, 1), high = bh_fixture_submission(31, 3, 1);
    struct bh_engine *engine = fixture->engine;
    uint32_t job;
    uint64_t generation;

    low.priority = BH_PRIORITY_LOW;
    low.contract = BH_CONTRACT_REQUEUE;
    high.priority = BH_PRIORITY_HIGH;
    bh_fixture_submit_running(fixture, low);
    job = job_find(engine, bh_fixture_submit(fixture, high));
    assert_non_null(bh_claim_of(engine, job));
    assert_null(bh_claim_reserved(engine, job));
    assert_int_equal(gpu_at(engine, gpu_find(engine, 1))->claimed, 1);
    generation = engine->core.generation;
    bh_claim_drop_all(engine, job);
    assert_null(bh_claim_of(engine, job));
    assert_int_equal(engine->core.claim_count, 0);
    assert_int_equal(gpu_at(engine, gpu_find(engine, 1))->claimed, 0);
    assert_true(engine->core.generation > generation);
    bh_claim_drop_all(engine, job); /* nothing is left to drop */
    bh_fixture_close(fixture);
}

static void
a_reservation_is_found_apart(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit first = bh_fixture_submission(21, 3, 1);
    uint32_t job;

    first.time_limit_ns = UINT64_C(3600000000000);
    bh_fixture_submit_running(fixture, first);
    job = job_find(fixture->engine, bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 2)));
    assert_null(bh_claim_of(fixture->engine, job));
    assert_non_null(bh_claim_reserved(fixture->engine, job));
    bh_claim_drop_all(fixture->engine, job);
    assert_int_equal(fixture->engine->core.reserved, 0);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_dropped_is_free),
    cmocka_unit_test(a_reservation_is_found_apart),
};
BH_TEST_MAIN(tests)
