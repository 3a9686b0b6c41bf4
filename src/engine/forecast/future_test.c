#include "engine/forecast/future.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

#define HOUR (UINT64_C(3600) * 1000000000)

enum { EVENTS_MAX = 4096 };

static struct bh_future_event events[EVENTS_MAX];
static uint32_t event_count;
static struct bh_future future;

static void
notify(void *self, const struct bh_engine *engine, const struct bh_future_event *event)
{
    if (event_count < EVENTS_MAX)
        events[event_count++] = *event;
    assert_ptr_equal(self, &events);
    assert_non_null(engine);
}

static struct bh_engine *
copy_of(const struct bh_engine *engine, uint32_t more_jobs)
{
    struct bh_engine_caps caps = bh_engine_caps(engine);
    void *memory;

    caps.jobs += more_jobs;
    memory = aligned_alloc(16, (bh_engine_size(&caps) + 15) & ~(size_t)15);
    assert_non_null(memory);
    return bh_engine_grow(engine, memory, &caps);
}

/* Play a copy of the story's engine; the engine itself must not change. */
static enum bh_future_end
future_test_play(const struct bh_fixture *fixture, struct bh_future_options options, uint32_t budget)
{
    struct bh_engine *copy = copy_of(fixture->engine, 0);
    uint64_t digest = bh_fixture_digest(fixture->engine);
    char broken[200] = "";
    enum bh_future_end end;

    event_count = 0;
    options.now_ns = fixture->now_ns;
    options.notify = notify;
    options.self = &events;
    bh_future_begin(&future, copy, &options);
    end = bh_future_run(&future, budget);
    BH_CHECK("the copy is sound", bh_engine_check(copy, broken, sizeof broken));
    BH_CHECK_EQ("nothing was changed", bh_fixture_digest(fixture->engine), digest);
    free(copy);
    return end;
}

/* When the news of that kind about the job came, in nanoseconds from now; or -1. */
static int64_t
when(const struct bh_fixture *fixture, enum bh_future_event_kind kind, uint64_t job)
{
    for (uint32_t i = 0; i < event_count; i++)
        if (events[i].kind == kind && events[i].job.v == job)
            return (int64_t)(events[i].at_ns - fixture->now_ns);
    return -1;
}

static struct bh_ev_submit
future_test_whole(enum bh_priority priority, uint64_t limit_ns)
{
    struct bh_ev_submit submit = bh_fixture_submission(21, 3, 1);

    submit.priority = priority;
    submit.time_limit_ns = limit_ns;
    return submit;
}

/* One GPU and jobs for the whole of it: they follow one another. */
static void
jobs_follow_one_another(void **state)
{
    static const struct {
        const char *name;
        uint64_t first_ns, second_ns, assumed_ns; /* limits; 0: none */
        enum bh_job_kind kind;                    /* of the first */
        int64_t second_starts, third_starts;
        enum bh_future_end end;
    } cases[] = {
        { "limits", HOUR, 2 * HOUR, 0, BH_JOB_BATCH, HOUR, 3 * HOUR, BH_FUTURE_DONE },
        { "no limit", 0, 2 * HOUR, 0, BH_JOB_BATCH, 24 * HOUR, 26 * HOUR, BH_FUTURE_DONE },
        { "assumed", 0, 0, 5 * HOUR, BH_JOB_BATCH, 5 * HOUR, 10 * HOUR, BH_FUTURE_DONE },
        { "a service with a limit", HOUR, HOUR, 0, BH_JOB_SERVICE, HOUR, 2 * HOUR, BH_FUTURE_DONE },
        { "a service", 0, HOUR, 0, BH_JOB_SERVICE, -1, -1, BH_FUTURE_HORIZON },
        { "a notebook", 0, HOUR, 0, BH_JOB_INTERACTIVE, -1, -1, BH_FUTURE_HORIZON },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_ev_submit first = future_test_whole(BH_PRIORITY_NORMAL, cases[i].first_ns);
        uint64_t second, third;

        first.kind = cases[i].kind;
        bh_fixture_submit_running(fixture, first);
        second = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, cases[i].second_ns));
        third = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, 0));
        BH_CHECK_EQ(
            cases[i].name,
            future_test_play(fixture, (struct bh_future_options){ .assumed_ns = cases[i].assumed_ns }, 10000),
            cases[i].end);
        BH_CHECK_EQ(cases[i].name, when(fixture, BH_FUTURE_EVENT_STARTS, second), cases[i].second_starts);
        BH_CHECK_EQ(cases[i].name, when(fixture, BH_FUTURE_EVENT_STARTS, third), cases[i].third_starts);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* What is under way at the beginning is finished first. */
static void
what_is_under_way_is_finished(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t first = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));
    uint64_t second = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));

    /* its partition is not carved yet */
    BH_CHECK_EQ("done", future_test_play(fixture, (struct bh_future_options){ 0 }, 1000), BH_FUTURE_DONE);
    BH_CHECK_EQ("it was placed before", when(fixture, BH_FUTURE_EVENT_STARTS, first), -1);
    BH_CHECK_EQ("the next one", when(fixture, BH_FUTURE_EVENT_STARTS, second), HOUR);
    BH_CHECK_EQ("by its limit", when(fixture, BH_FUTURE_EVENT_ENDS, first), HOUR);
    bh_fixture_finish_effects(fixture);
    bh_fixture_tick(fixture, HOUR / 2);
    BH_CHECK_EQ("later", future_test_play(fixture, (struct bh_future_options){ 0 }, 1000), BH_FUTURE_DONE);
    BH_CHECK_EQ("half the wait is over", when(fixture, BH_FUTURE_EVENT_STARTS, second), HOUR / 2);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* A job that has run longer than is assumed goes on as long again. */
static void
an_overdue_job_goes_on(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t second;

    bh_fixture_submit_running(fixture, future_test_whole(BH_PRIORITY_NORMAL, 0));
    second = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));
    bh_fixture_tick(fixture, 30 * HOUR);
    BH_CHECK_EQ("done", future_test_play(fixture, (struct bh_future_options){ 0 }, 1000), BH_FUTURE_DONE);
    BH_CHECK_EQ("as long again", when(fixture, BH_FUTURE_EVENT_STARTS, second), 30 * HOUR);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static void
preemption_is_predicted(void **state)
{
    static const struct {
        const char *name;
        enum bh_contract contract;
        enum bh_future_event_kind preemptible;
        enum bh_future_event_kind back; /* how the lower one goes on after an hour */
        int64_t end;
    } cases[] = {
        { "suspend", BH_CONTRACT_SUSPEND, BH_FUTURE_EVENT_SUSPENDED, BH_FUTURE_EVENT_RESUMES, 5 * HOUR },
        { "requeue", BH_CONTRACT_REQUEUE, BH_FUTURE_EVENT_REQUEUED, BH_FUTURE_EVENT_STARTS, 5 * HOUR },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_ev_submit low = future_test_whole(BH_PRIORITY_LOW, 4 * HOUR);
        struct bh_event submit = { .kind = BH_EV_SUBMIT,
                                   .u.submit = future_test_whole(BH_PRIORITY_HIGH, HOUR) };
        struct bh_engine *copy;
        uint64_t first;

        low.contract = cases[i].contract;
        first = bh_fixture_submit_running(fixture, low);
        submit.u.submit.job.v = 99;
        copy = copy_of(fixture->engine, 0);
        event_count = 0;
        bh_future_begin(&future, copy,
                        &(struct bh_future_options){ .now_ns = fixture->now_ns,
                                                     .notify = notify,
                                                     .self = &events,
                                                     .until = { 777 } }); /* to the end */
        BH_CHECK_EQ(cases[i].name, bh_future_send(&future, &submit), BH_OK);
        BH_CHECK_EQ(cases[i].name, when(fixture, cases[i].preemptible, first), 0);
        BH_CHECK_EQ(cases[i].name, events[0].for_job.v, 99);
        while (bh_future_run(&future, 1) == BH_FUTURE_MORE)
            ; /* in the smallest portions */
        BH_CHECK_EQ(cases[i].name, when(fixture, BH_FUTURE_EVENT_STARTS, 99), 0);
        BH_CHECK_EQ(cases[i].name, when(fixture, BH_FUTURE_EVENT_ENDS, 99), HOUR);
        BH_CHECK_EQ(cases[i].name, when(fixture, cases[i].back, first), HOUR);
        BH_CHECK_EQ(cases[i].name, when(fixture, BH_FUTURE_EVENT_ENDS, first), cases[i].end);
        free(copy);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
it_stops_at_its_job_horizon_or_budget(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit held = future_test_whole(BH_PRIORITY_NORMAL, HOUR);
    uint64_t second, third;

    bh_fixture_submit_running(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));
    second = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));
    third = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));
    held.hold = true;
    bh_fixture_submit(fixture, held);
    BH_CHECK_EQ("a job", future_test_play(fixture, (struct bh_future_options){ .until = { second } }, 1000),
                BH_FUTURE_DONE);
    BH_CHECK_EQ("the next is not played", when(fixture, BH_FUTURE_EVENT_STARTS, third), -1);
    BH_CHECK_EQ("a horizon",
                future_test_play(fixture, (struct bh_future_options){ .horizon_ns = HOUR + 1 }, 1000),
                BH_FUTURE_HORIZON);
    BH_CHECK_EQ("before it", when(fixture, BH_FUTURE_EVENT_STARTS, second), HOUR);
    BH_CHECK_EQ("behind it", when(fixture, BH_FUTURE_EVENT_STARTS, third), -1);
    BH_CHECK_EQ("a budget", future_test_play(fixture, (struct bh_future_options){ 0 }, 2), BH_FUTURE_MORE);
    BH_CHECK_EQ("held jobs are not waited for",
                future_test_play(fixture, (struct bh_future_options){ 0 }, 1000), BH_FUTURE_DONE);
    BH_CHECK_EQ("all others started", when(fixture, BH_FUTURE_EVENT_STARTS, third), 2 * HOUR);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* A node that is down answers nothing and starts nothing. */
static void
a_node_that_is_down_stays_down(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t second;

    bh_fixture_submit_running(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));
    second = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));
    bh_fixture_node(fixture, 1, false);
    BH_CHECK("nothing", future_test_play(fixture, (struct bh_future_options){ 0 }, 1000) >= BH_FUTURE_QUIET);
    BH_CHECK_EQ("it waits", when(fixture, BH_FUTURE_EVENT_STARTS, second), -1);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* More jobs than the queue of orders holds, on many GPUs. */
static void
a_flood_is_played_whole(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(64);
    uint32_t starts = 0;

    fixture->quick = true;
    for (uint32_t i = 0; i < 1500; i++) {
        struct bh_ev_submit submit = bh_fixture_submission(21 + i % 2 * 10, 1 + i % 3, 1);

        submit.time_limit_ns = HOUR * (1 + i % 5);
        bh_fixture_submit(fixture, submit);
    }
    BH_CHECK_EQ("done", future_test_play(fixture, (struct bh_future_options){ 0 }, 1000000), BH_FUTURE_DONE);
    for (uint32_t i = 0; i < event_count; i++)
        starts += events[i].kind == BH_FUTURE_EVENT_STARTS;
    BH_CHECK("hundreds start later", starts > 1000);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* A job that stops may use its grace to the end, and says so; without the grace it gets the order again. */
static void
a_grace_is_waited_for(void **state)
{
    static const uint64_t grace_ns = UINT64_C(600) * 1000000000;
    struct bh_event at_once = { .kind = BH_EV_CANCEL, .u.job.at_once = true };
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit stubborn = future_test_whole(BH_PRIORITY_NORMAL, 0);
    struct bh_reason why;
    uint64_t second;

    stubborn.grace_ns = grace_ns;
    at_once.u.job.job.v = bh_fixture_submit_running(fixture, stubborn);
    second = bh_fixture_submit(fixture, future_test_whole(BH_PRIORITY_NORMAL, HOUR));
    BH_CHECK_EQ("cancelled", bh_fixture_cancel(fixture, at_once.u.job.job.v), BH_OK);
    why = bh_fixture_why(fixture, at_once.u.job.job.v);
    BH_CHECK_EQ("why", why.code, BH_REASON_STOPPING);
    BH_CHECK_EQ("until", why.frees_at_ns, fixture->now_ns + grace_ns);
    bh_fixture_tick(fixture, grace_ns / 4);
    BH_CHECK_EQ("done", future_test_play(fixture, (struct bh_future_options){ 0 }, 1000), BH_FUTURE_DONE);
    BH_CHECK_EQ("it may keep the room to the end of its grace", when(fixture, BH_FUTURE_EVENT_STARTS, second),
                grace_ns / 4 * 3);
    BH_CHECK_EQ("again", bh_fixture_cancel(fixture, at_once.u.job.job.v), BH_OK);
    BH_CHECK_EQ("no second order", bh_fixture_effects(fixture, BH_FX_STOP), 0);
    BH_CHECK_EQ("at once", bh_fixture_send(fixture, &at_once), BH_OK);
    BH_CHECK_EQ("a second order", bh_fixture_effects(fixture, BH_FX_STOP), 1);
    BH_CHECK_EQ("has no grace", fixture->step.effects[0].grace_ns, 0);
    BH_CHECK_EQ("done", future_test_play(fixture, (struct bh_future_options){ 0 }, 1000), BH_FUTURE_DONE);
    BH_CHECK_EQ("at once", when(fixture, BH_FUTURE_EVENT_STARTS, second), 0);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* Jobs that were ordered to stop at one moment end at one moment: two jobs, or the members of one. */
static void
one_grace_ends_for_all(void **state)
{
    static const uint64_t grace_ns = UINT64_C(600) * 1000000000;
    static const struct {
        const char *name;
        uint32_t jobs, members;
    } cases[] = { { "two jobs", 2, 1 }, { "a gang", 1, 2 }, { "two gangs", 2, 2 } };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        uint32_t capacities_left = cases[i].jobs * cases[i].members;
        struct bh_fixture *fixture = bh_fixture_site(capacities_left);
        struct bh_ev_submit stubborn = future_test_whole(BH_PRIORITY_NORMAL, 0);
        struct bh_ev_submit all = bh_fixture_submission(21, 3, capacities_left);
        uint64_t jobs[2], next;

        stubborn.gang = cases[i].members;
        stubborn.grace_ns = grace_ns;
        for (uint32_t k = 0; k < cases[i].jobs; k++)
            jobs[k] = bh_fixture_submit_running(fixture, stubborn);
        next = bh_fixture_submit(fixture, all);
        for (uint32_t k = 0; k < cases[i].jobs; k++)
            BH_CHECK_EQ(cases[i].name, bh_fixture_cancel(fixture, jobs[k]), BH_OK);
        BH_CHECK_EQ(cases[i].name, future_test_play(fixture, (struct bh_future_options){ 0 }, 1000),
                    BH_FUTURE_DONE);
        BH_CHECK_EQ(cases[i].name, when(fixture, BH_FUTURE_EVENT_STARTS, next), grace_ns);
        for (uint32_t k = 0; k < cases[i].jobs; k++)
            BH_CHECK_EQ(cases[i].name, when(fixture, BH_FUTURE_EVENT_ENDS, jobs[k]), grace_ns);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(jobs_follow_one_another),
    cmocka_unit_test(what_is_under_way_is_finished),
    cmocka_unit_test(an_overdue_job_goes_on),
    cmocka_unit_test(preemption_is_predicted),
    cmocka_unit_test(it_stops_at_its_job_horizon_or_budget),
    cmocka_unit_test(a_node_that_is_down_stays_down),
    cmocka_unit_test(a_flood_is_played_whole),
    cmocka_unit_test(a_grace_is_waited_for),
    cmocka_unit_test(one_grace_ends_for_all),
};
BH_TEST_MAIN(tests)
