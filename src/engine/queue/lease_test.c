#include "engine/queue/lease.h"

#include "base/attr.h"
#include "engine/queue/queue.h"
#include "engine/state/slots.h"
#include "engine/step/decide.h"
#include "engine/step/fixture_test.h"

/* The events that each state takes; all others are refused. */
static void
only_listed_pairs_are_taken(void **state)
{
    static const struct {
        const char *name;
        enum lease_state state;
        uint32_t allowed; /* bits of enum lease_event */
    } cases[] = {
#define ON(event) (1u << LEASE_##event)
        { "carving", LEASE_CARVING, ON(READY) | ON(CARVE_FAILED) | ON(STOP) },
        { "starting", LEASE_STARTING, ON(STARTED) | ON(START_FAILED) | ON(STOP) | ON(ENDED) },
        { "running", LEASE_RUNNING, ON(SUSPEND) | ON(STOP) | ON(ENDED) },
        { "suspending", LEASE_SUSPENDING, ON(SUSPENDED_OK) | ON(SUSPEND_FAILED) | ON(STOP) | ON(ENDED) },
        { "suspended", LEASE_SUSPENDED, ON(RESUME) | ON(STOP) | ON(ENDED) },
        { "recarving", LEASE_RECARVING, ON(READY) | ON(CARVE_FAILED) | ON(STOP) | ON(ENDED) },
        { "resuming", LEASE_RESUMING, ON(RESUMED) | ON(RESUME_FAILED) | ON(STOP) | ON(ENDED) },
        { "stopping", LEASE_STOPPING, ~(ON(SUSPEND) | ON(RESUME)) & ((1u << LEASE_EVENTS) - 1) },
        { "done", LEASE_DONE, 0 },
#undef ON
    };
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint32_t slot;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    slot = lease_find(fixture->engine, 1);
    assert_int_equal(BH_COUNT(cases), LEASE_STATES - 1);
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        for (uint32_t event = 0; event < LEASE_EVENTS; event++) {
            lease_at(fixture->engine, slot)->state = (uint8_t)cases[i].state;
            BH_CHECK_EQ(cases[i].name, bh_lease_allows(fixture->engine, slot, (enum lease_event)event),
                        cases[i].allowed >> event & 1);
        }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* How a lease ended by itself, and what becomes of its job. */
static void
ends_have_their_consequences(void **state)
{
    static const struct {
        const char *name;
        enum bh_end_cause cause;
        int32_t status;
        enum bh_contract contract;
        enum bh_job_state becomes;
        bool elsewhere;
    } cases[] = {
        { "exit 0", BH_END_EXITED, 0, BH_CONTRACT_REQUEUE, BH_JOB_COMPLETED },
        { "exit 1", BH_END_EXITED, 1, BH_CONTRACT_REQUEUE, BH_JOB_FAILED },
        { "a signal", BH_END_SIGNALLED, 9, BH_CONTRACT_REQUEUE, BH_JOB_FAILED },
        { "out of memory", BH_END_OUT_OF_MEMORY, 0, BH_CONTRACT_REQUEUE, BH_JOB_FAILED },
        { "node lost", BH_END_NODE_LOST, 0, BH_CONTRACT_REQUEUE, BH_JOB_STARTING },
        { "node lost, never again", BH_END_NODE_LOST, 0, BH_CONTRACT_NEVER, BH_JOB_FAILED },
        { "GPU lost", BH_END_GPU_LOST, 0, BH_CONTRACT_SUSPEND, BH_JOB_STARTING },
        { "keeper lost", BH_END_KEEPER_LOST, 0, BH_CONTRACT_REQUEUE, BH_JOB_STARTING, true },
        { "keeper lost, never again", BH_END_KEEPER_LOST, 0, BH_CONTRACT_NEVER, BH_JOB_FAILED, true },
        { "keeper lost, by a record of before", BH_END_KEEPER_LOST, 0, BH_CONTRACT_REQUEUE, BH_JOB_FAILED },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_ev_submit submit = bh_fixture_submission(21, 1, 1);
        struct bh_event ended = { .kind = BH_EV_ENDED };
        uint64_t job;

        submit.contract = cases[i].contract;
        job = bh_fixture_submit_running(fixture, submit);
        ended.u.ended = (struct bh_ev_ended){ .lease = bh_fixture_job(fixture, job).lease,
                                              .cause = cases[i].cause,
                                              .exit_status = cases[i].status,
                                              .elsewhere = cases[i].elsewhere };
        bh_fixture_must_send(fixture, &ended);
        BH_CHECK_EQ(cases[i].name, bh_fixture_state(fixture, job), cases[i].becomes);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
a_carve_that_fails_is_tried_elsewhere_three_times(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    uint32_t first = bh_fixture_placement_of(fixture, job) / 100;

    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    assert_true(bh_fixture_placement_of(fixture, job) / 100 != first);
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    assert_int_equal(bh_fixture_job(fixture, job).cause, BH_END_CARVE_FAILED);
    bh_fixture_close(fixture);
}

static void
on_the_only_gpu_a_failed_carve_waits_a_while(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));

    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    assert_int_equal(bh_engine_next_tick_ns(fixture->engine), fixture->now_ns + 5000000000ull);
    bh_fixture_tick(fixture, 5000000000ull);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

/* A copy that takes records without decisions, as forecasts do, still wakes what is deferred at its time,
 * also when a second candidate is deferred for longer after that. */
static void
what_is_deferred_wakes_after_a_replay(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_engine *engine = fixture->engine;
    struct bh_ev_submit low = bh_fixture_submission(21, 1, 7), high = low;
    struct bh_event tick = { .kind = BH_EV_TICK };
    struct bh_queue_entry first = { 0 }, second = { 0 };

    high.priority = BH_PRIORITY_HIGH;
    bh_fixture_submit_running(fixture, low);
    first.class = job_at(engine, job_find(engine, bh_fixture_submit(fixture, low)))->class;
    second.class = job_at(engine, job_find(engine, bh_fixture_submit(fixture, high)))->class;
    assert_true(first.class && second.class && first.class != second.class);
    bh_queue_defer(engine, &first, fixture->now_ns + 10);
    tick.now_ns = fixture->now_ns;
    tick.seq = ++fixture->seq;
    assert_int_equal(bh_engine_replay(engine, &tick, NULL, 0, &fixture->step), BH_OK);
    bh_queue_defer(engine, &second, fixture->now_ns + 20);
    assert_true(engine->hints.wake_stale);
    assert_true(bh_decide_due(engine));
    assert_int_equal(engine->hints.wake_ns, fixture->now_ns + 10);
    bh_fixture_close(fixture);
}

static void
a_start_that_fails_ends_the_job(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));

    bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    assert_int_equal(bh_fixture_job(fixture, job).cause, BH_END_START_FAILED);
    bh_fixture_close(fixture);
}

/* A job that was ordered to end, and the end that is reported: the job's own end, when it came first, or the
 * reason of the order. */
static void
an_end_of_its_own_outranks_the_stop(void **state)
{
    static const struct {
        const char *name;
        enum bh_end_cause stop, cause;
        int32_t status;
        bool unasked, completed;
        enum bh_job_state becomes;
    } cases[] = {
        { "done before preempted", BH_END_PREEMPTED, BH_END_EXITED, 0, true, false, BH_JOB_COMPLETED },
        { "preempted", BH_END_PREEMPTED, BH_END_EXITED, 0, false, false, BH_JOB_STARTING },
        { "failed before preempted", BH_END_PREEMPTED, BH_END_EXITED, 1, true, false, BH_JOB_FAILED },
        { "crashed before", BH_END_PREEMPTED, BH_END_SIGNALLED, 139, true, false, BH_JOB_FAILED },
        { "out of memory before", BH_END_PREEMPTED, BH_END_OUT_OF_MEMORY, 137, true, false, BH_JOB_FAILED },
        { "keeper lost while", BH_END_PREEMPTED, BH_END_KEEPER_LOST, 137, true, false, BH_JOB_STARTING },
        { "done before its limit", BH_END_TIME_LIMIT, BH_END_EXITED, 0, true, false, BH_JOB_COMPLETED },
        { "over its limit", BH_END_TIME_LIMIT, BH_END_EXITED, 0, false, false, BH_JOB_FAILED },
        { "done before cancelled", BH_END_CANCELLED, BH_END_EXITED, 0, true, false, BH_JOB_COMPLETED },
        { "cancelled", BH_END_CANCELLED, BH_END_EXITED, 0, false, false, BH_JOB_CANCELLED },
        { "never ran", BH_END_CANCELLED, BH_END_START_FAILED, 0, false, false, BH_JOB_CANCELLED },
        { "done before its grant ended", BH_END_DATASET, BH_END_EXITED, 0, true, false, BH_JOB_COMPLETED },
        { "its grant ended", BH_END_DATASET, BH_END_SIGNALLED, 143, false, false, BH_JOB_FAILED },
        { "never had one", BH_END_DATASET, BH_END_START_FAILED, 0, false, false, BH_JOB_FAILED },
        { "done before resumed", BH_END_RESUME_FAILED, BH_END_EXITED, 0, true, false, BH_JOB_COMPLETED },
        { "its GPU was lost", BH_END_GPU_LOST, BH_END_EXITED, 1, true, false, BH_JOB_STARTING },
        { "done before its GPU was lost", BH_END_GPU_LOST, BH_END_EXITED, 0, true, true, BH_JOB_COMPLETED },
        { "done before its GPU failed", BH_END_GPU_FAULT, BH_END_EXITED, 0, true, true, BH_JOB_COMPLETED },
        { "a record from before the rule", BH_END_GPU_LOST, BH_END_EXITED, 0, true, false, BH_JOB_STARTING },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
        struct bh_event ended = { .kind = BH_EV_ENDED };
        uint32_t slot = lease_find(fixture->engine, 1);
        struct lease *lease = lease_at(fixture->engine, slot);

        fixture->quick = true; /* the stop is set by hand */
        lease->stop_cause = (uint8_t)cases[i].stop;
        lease->state = LEASE_STOPPING;
        lease->waiting = BH_FX_STOP + 1;
        lease->order = 99;
        fixture->engine->core.leaving = slot;
        ended.u.ended = (struct bh_ev_ended){ .lease = { 1 },
                                              .cause = cases[i].cause,
                                              .exit_status = cases[i].status,
                                              .unasked = cases[i].unasked,
                                              .completed = cases[i].completed };
        bh_fixture_must_send(fixture, &ended);
        BH_CHECK_EQ(cases[i].name, bh_fixture_state(fixture, job), cases[i].becomes);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* Three failures in a row end a job, not three in its life. */
static void
a_carve_that_succeeds_clears_the_failures(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    struct bh_event gone = { .kind = BH_EV_PARTITION_GONE };

    for (int life = 0; life < 3; life++) {
        bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
        bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED);
        bh_fixture_finish_effects(fixture);
        assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
        gone.u.partition.partition = bh_fixture_job(fixture, job).partitions[0].partition;
        bh_fixture_must_send(fixture, &gone);
        bh_fixture_answer_next(fixture, BH_OUTCOME_OK); /* the stop: it is queued again, and carved for */
    }
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_listed_pairs_are_taken),
    cmocka_unit_test(ends_have_their_consequences),
    cmocka_unit_test(a_carve_that_fails_is_tried_elsewhere_three_times),
    cmocka_unit_test(on_the_only_gpu_a_failed_carve_waits_a_while),
    cmocka_unit_test(what_is_deferred_wakes_after_a_replay),
    cmocka_unit_test(a_start_that_fails_ends_the_job),
    cmocka_unit_test(an_end_of_its_own_outranks_the_stop),
    cmocka_unit_test(a_carve_that_succeeds_clears_the_failures),
};
BH_TEST_MAIN(tests)
