#include "engine/forecast/whatif.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

#define HOUR (UINT64_C(3600) * 1000000000)
#define SECOND UINT64_C(1000000000)

enum { ROWS_MAX = 16 };

struct side {
    struct bh_job_forecast rows[ROWS_MAX];
    struct bh_job_forecasts forecasts;
};

static struct bh_future future;

/* The future of the story with these events in its present. */
static void
whatif_test_play(const struct bh_fixture *fixture, const struct bh_event *events, uint32_t count,
                 struct side *ret_side)
{
    struct bh_engine_caps caps = bh_engine_caps(fixture->engine);
    void *memory = aligned_alloc(16, (bh_engine_size(&caps) + 15) & ~(size_t)15);
    struct bh_future_options options = { .now_ns = fixture->now_ns,
                                         .notify = bh_job_forecasts_notify,
                                         .self = &ret_side->forecasts };
    struct bh_engine *copy;

    assert_non_null(memory);
    copy = bh_engine_grow(fixture->engine, memory, &caps);
    *ret_side = (struct side){ .forecasts = { .max = ROWS_MAX } };
    ret_side->forecasts.rows = ret_side->rows;
    assert_int_equal(bh_job_forecasts_begin(&ret_side->forecasts, copy), BH_OK);
    bh_future_begin(&future, copy, &options);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(bh_future_send(&future, &events[i]), BH_OK);
    bh_job_forecasts_close(&ret_side->forecasts, &future, bh_future_run(&future, 100000));
    free(memory);
}

static struct bh_ev_submit
whatif_test_whole(uint32_t tenant, enum bh_priority priority, uint64_t limit_ns)
{
    struct bh_ev_submit submit = bh_fixture_submission(tenant, 3, 1);

    submit.priority = priority;
    submit.time_limit_ns = limit_ns;
    return submit;
}

static struct bh_event
submission(uint64_t job, struct bh_ev_submit submit)
{
    submit.job.v = job;
    return (struct bh_event){ .kind = BH_EV_SUBMIT, .u.submit = submit };
}

static const struct bh_difference *
whatif_test_find(const struct bh_difference *differences, uint32_t count, uint64_t job)
{
    for (uint32_t i = 0; i < count; i++)
        if (differences[i].job.v == job)
            return &differences[i];
    return NULL;
}

/* Two GPUs; job 1 runs for 4 h on one and makes way by suspension, job 2 for 1 h on the
 * other and never does, job 3 waits for an hour and would run for 2 h, job 4 follows. */
static struct bh_fixture *
busy_site(void)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit job = whatif_test_whole(21, BH_PRIORITY_LOW, 4 * HOUR);

    job.contract = BH_CONTRACT_SUSPEND;
    bh_fixture_submit_running(fixture, job);
    job = whatif_test_whole(21, BH_PRIORITY_NORMAL, HOUR);
    job.contract = BH_CONTRACT_NEVER;
    bh_fixture_submit_running(fixture, job);
    job.contract = BH_CONTRACT_REQUEUE;
    job.priority = BH_PRIORITY_LOW;
    job.time_limit_ns = 2 * HOUR;
    bh_fixture_submit(fixture, job);
    bh_fixture_submit(fixture, job);
    return fixture;
}

static struct bh_event
drained(const struct bh_fixture *fixture, uint32_t gpu)
{
    struct bh_event event = { .kind = BH_EV_TICK };

    BH_CHECK("the GPU", bh_whatif_drain(fixture->engine, (bh_gpu_id){ gpu }, &event));
    BH_CHECK("no other", !bh_whatif_drain(fixture->engine, (bh_gpu_id){ 77 }, &event));
    return event;
}

static struct bh_event
cancellation(uint64_t job)
{
    return (struct bh_event){ .kind = BH_EV_CANCEL, .u.job = { { job } } };
}

static struct bh_event
whatif_test_limited(uint64_t parts)
{
    return (struct bh_event){
        .kind = BH_EV_TENANT,
        .u.tenant = { .tenant = { 21 }, .parent = { 2 }, .kind = BH_TENANT_PROJECT, .limit = parts }
    };
}

static void
changes_are_reported(void **state)
{
    static const struct {
        const char *name;
        uint64_t job;
        enum bh_difference_kind kind;    /* KINDS: none */
        uint64_t before, after, for_job; /* hours, from now, plus 1; 0: not */
    } told[][5] = {
        [0] = { { "cancel 2: itself", 2, BH_DIFF_CANCELLED, 2, 1, 0 },
                { "cancel 2: the next", 3, BH_DIFF_EARLIER, 2, 1, 0 },
                { "cancel 2: the last", 4, BH_DIFF_EARLIER, 4, 3, 0 },
                { "cancel 2: the other", 1, BH_DIFF_KINDS, 0, 0, 0 } },
        [1] = { { "a high job: who makes way", 1, BH_DIFF_SUSPENDED, 0, 1, 9 },
                { "a high job: not 2", 2, BH_DIFF_KINDS, 0, 0, 0 } },
        [2] = { { "no limit any more: 3", 3, BH_DIFF_NEVER, 2, 0, 0 },
                { "no limit any more: 4", 4, BH_DIFF_NEVER, 4, 0, 0 } },
        [3] = { { "drain the second GPU: 3", 3, BH_DIFF_LATER, 2, 5, 0 },
                { "drain the second GPU: 4", 4, BH_DIFF_LATER, 4, 7, 0 },
                { "drain the second GPU: 2", 2, BH_DIFF_KINDS, 0, 0, 0 } },
    };
    struct bh_fixture *fixture = busy_site();
    uint32_t second = bh_fixture_placement_of(fixture, 2) / 100;
    const struct bh_event events[] = {
        cancellation(2),
        submission(9, whatif_test_whole(31, BH_PRIORITY_HIGH, HOUR)),
        whatif_test_limited(100),
        drained(fixture, second),
    };
    struct side before, after;

    whatif_test_play(fixture, NULL, 0, &before);
    for (size_t i = 0; i < BH_COUNT(told); i++) {
        struct bh_difference differences[ROWS_MAX];
        uint32_t count;

        whatif_test_play(fixture, &events[i], 1, &after);
        count = bh_whatif_compare(&before.forecasts, &after.forecasts, SECOND, differences, ROWS_MAX);
        for (size_t k = 0; told[i][k].name; k++) {
            const struct bh_difference *found = whatif_test_find(differences, count, told[i][k].job);

            BH_CHECK_EQ(told[i][k].name, found ? found->kind : BH_DIFF_KINDS, told[i][k].kind);
            if (!found)
                continue;
            BH_CHECK_EQ(told[i][k].name, found->for_job.v, told[i][k].for_job);
            BH_CHECK_EQ(told[i][k].name, found->after_ns,
                        told[i][k].after ? fixture->now_ns + (told[i][k].after - 1) * HOUR : 0);
            if (told[i][k].kind != BH_DIFF_CANCELLED)
                BH_CHECK_EQ(told[i][k].name, found->before_ns,
                            told[i][k].before ? fixture->now_ns + (told[i][k].before - 1) * HOUR : 0);
        }
    }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static void
the_same_twice_differs_in_nothing(void **state)
{
    struct bh_fixture *fixture = busy_site();
    struct side before, after;

    whatif_test_play(fixture, NULL, 0, &before);
    whatif_test_play(fixture, NULL, 0, &after);
    BH_CHECK_EQ("rows", before.forecasts.count, 4);
    BH_CHECK_EQ("needed", bh_job_forecasts_needed(fixture->engine), 4);
    BH_CHECK_EQ("none", bh_whatif_compare(&before.forecasts, &after.forecasts, 0, NULL, 0), 0);
    BH_CHECK_EQ("when 3 starts", bh_job_forecasts_find(&before.forecasts, (bh_job_id){ 3 })->start_ns,
                fixture->now_ns + HOUR);
    BH_CHECK("where", bh_job_forecasts_find(&before.forecasts, (bh_job_id){ 3 })->gpu.v != 0);
    BH_CHECK("no job", !bh_job_forecasts_find(&before.forecasts, (bh_job_id){ 77 }));
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* A job that was submitted in the other future has a row there, and is no difference. */
static void
a_new_job_has_an_outlook(void **state)
{
    struct bh_fixture *fixture = busy_site();
    struct bh_event submit = submission(9, whatif_test_whole(21, BH_PRIORITY_LOW, HOUR));
    struct side before, after;
    const struct bh_job_forecast *row;

    whatif_test_play(fixture, NULL, 0, &before);
    whatif_test_play(fixture, &submit, 1, &after);
    row = bh_job_forecasts_find(&after.forecasts, (bh_job_id){ 9 });
    BH_CHECK("a row", row != NULL);
    BH_CHECK_EQ("behind the others", row ? row->start_ns : 0, fixture->now_ns + 4 * HOUR);
    BH_CHECK_EQ("none", bh_whatif_compare(&before.forecasts, &after.forecasts, 0, NULL, 0), 0);
    before.forecasts.max = 2;
    BH_CHECK_EQ("no room for all", bh_job_forecasts_begin(&before.forecasts, fixture->engine), BH_FULL);
    BH_CHECK_EQ("some are there", before.forecasts.count, 2);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* Draining is a cordon, and nothing else of the GPU is different then. */
static void
a_drained_gpu_is_what_it_was(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_gpu gpu = { .gpu = { 71 },
                             .node = { 1 },
                             .model = BH_GPU_H100_80GB,
                             .managed = true,
                             .mig_capable = true,
                             .link = 2,
                             .numa = 1,
                             .layout = BH_POOL_LAYOUT_PRODUCTION };
    struct bh_event event = { .kind = BH_EV_TICK };

    bh_fixture_gpu(fixture, gpu);
    BH_CHECK("found", bh_whatif_drain(fixture->engine, gpu.gpu, &event));
    BH_CHECK_EQ("an event of the GPU", event.kind, BH_EV_GPU);
    BH_CHECK("cordoned", event.u.gpu.cordoned && event.u.gpu.managed && event.u.gpu.mig_capable);
    BH_CHECK_EQ("its link", event.u.gpu.link, 2);
    BH_CHECK_EQ("its NUMA node", event.u.gpu.numa, 1);
    BH_CHECK_EQ("its layout", event.u.gpu.layout, BH_POOL_LAYOUT_PRODUCTION);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(changes_are_reported),
    cmocka_unit_test(the_same_twice_differs_in_nothing),
    cmocka_unit_test(a_new_job_has_an_outlook),
    cmocka_unit_test(a_drained_gpu_is_what_it_was),
};
BH_TEST_MAIN(tests)
