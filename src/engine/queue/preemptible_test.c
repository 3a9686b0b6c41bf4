#include "engine/queue/preemptible.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* The tenant's list as ids: first, second, ... */
static void
must_list(const char *name, const struct bh_engine *engine, uint32_t tenant, const uint64_t *jobs,
          uint32_t count)
{
    uint32_t job = bh_preemptible_first(engine, tenant_find(engine, tenant));

    for (uint32_t i = 0; i < count; i++) {
        BH_CHECK_EQ(name, job ? job_at(engine, job)->id : 0, jobs[i]);
        job = job ? bh_preemptible_next(engine, job) : 0;
    }
    BH_CHECK_EQ(name, job, 0);
}

static uint64_t
preemptible_test_submit(struct bh_fixture *fixture, uint32_t tenant, enum bh_contract contract)
{
    struct bh_ev_submit wants = bh_fixture_submission(tenant, 3, 1);

    wants.contract = contract;
    return bh_fixture_submit(fixture, wants);
}

/* Jobs stand by when they began, not by when they were placed, and only those of the tenant
 * that may make way. */
static void
who_began_first_stands_first(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(8);
    uint64_t a = preemptible_test_submit(fixture, 21, BH_CONTRACT_REQUEUE);
    uint64_t b = preemptible_test_submit(fixture, 21, BH_CONTRACT_SUSPEND);
    uint64_t firm = preemptible_test_submit(fixture, 21, BH_CONTRACT_NEVER);
    uint64_t other = preemptible_test_submit(fixture, 31, BH_CONTRACT_REQUEUE);
    struct bh_effect carve[4], start[4];
    struct bh_event event;

    must_list("as placed", fixture->engine, 21, (uint64_t[]){ a, b }, 2);
    must_list("the other", fixture->engine, 31, (uint64_t[]){ other }, 1);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(bh_fixture_next_effect(fixture, &carve[i]));
    for (uint32_t i = 0; i < 4; i++) {
        event = bh_fixture_answer(&carve[i], BH_OUTCOME_OK);
        bh_fixture_must_send(fixture, &event);
        assert_true(bh_fixture_next_effect(fixture, &start[i]));
    }
    for (uint32_t i = 4; i-- > 0;) { /* the last placed begins first */
        fixture->now_ns += 1000;
        event = bh_fixture_answer(&start[i], BH_OUTCOME_OK);
        bh_fixture_must_send(fixture, &event);
    }
    must_list("as begun", fixture->engine, 21, (uint64_t[]){ b, a }, 2);
    assert_int_equal(bh_preemptible_since_ns(fixture->engine, job_find(fixture->engine, a)), fixture->now_ns);
    bh_fixture_exit_job(fixture, b, 0);
    must_list("one ended", fixture->engine, 21, (uint64_t[]){ a }, 1);
    assert_int_equal(bh_fixture_state(fixture, firm), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

static void
a_larger_block_takes_the_lists_over(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(8);
    uint64_t a = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    uint64_t b = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    struct bh_engine_caps caps = bh_engine_caps(fixture->engine);
    struct bh_engine *grown;

    caps.leases *= 2;
    caps.tenants *= 2;
    grown = aligned_alloc(16, (bh_engine_size(&caps) + 15) & ~(size_t)15);
    assert_non_null(grown);
    bh_engine_grow(fixture->engine, grown, &caps);
    must_list("grown", grown, 21, (uint64_t[]){ a, b }, 2);
    free(grown);
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_began_first_stands_first),
    cmocka_unit_test(a_larger_block_takes_the_lists_over),
};
BH_TEST_MAIN(tests)
