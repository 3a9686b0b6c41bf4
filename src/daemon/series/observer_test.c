/* What is looked at: figures of the engine, and reports of a node with one GPU that a job has whole. */

#include "daemon/series/observer.h"

#include "base/time.h"
#include "daemon/fixture/gpu_fixture_test.h"
#include "daemon/names/directory.h"
#include "daemon/series/recorder.h"

static struct fixture f;
static const char *report; /* of the node; NULL: it is not connected */

/* ---- an owner that answers at once ---- */

static bh_rc
observer_test_ask(void *self, bh_question question, void *question_self, struct bh_err *err)
{
    question(question_self, f.core.state.engine, 1800000000 * BH_NS_PER_S);
    return BH_OK;
}

static const struct bh_directory *
observer_test_directory(void *self)
{
    return bh_catalog_get(f.core.catalog);
}

static void
observer_test_put(void *self, const struct bh_directory *dir)
{
    bh_catalog_put(f.core.catalog, dir);
}

static bool
observer_test_inventory(void *self, uint32_t *cursor, struct bh_buf *ret_json)
{
    if (*cursor > 0 || !report)
        return false;
    ++*cursor;
    bh_buf_puts(ret_json, report);
    return true;
}

static const struct bh_owner_ops ops = { .ask = observer_test_ask,
                                         .directory_get = observer_test_directory,
                                         .directory_put = observer_test_put,
                                         .inventory = observer_test_inventory };
static const struct bh_owner owner = { &ops, NULL };

/* A report of some second; `gpu` and `sample` are members of the GPU and of the job's sample. */
static const char *
observer_test_report(uint32_t at_s, const char *gpu, const char *sample)
{
    static char text[1024];

    snprintf(text, sizeof text,
             "{\"node\":\"n1\",\"gpus\":[{\"uuid\":\"GPU-1\"}],\"samples\":{\"at_ns\":\"%u000000000\","
             "\"gpus\":[{\"uuid\":\"GPU-1\"%s}],\"samples\":[{\"lease\":1%s}]}}",
             at_s, gpu, sample);
    return text;
}

static int
open_site(void **state)
{
    gpu_fixture_open_site(&f, whole_yaml);
    assert_int_equal(fixture_submit(&f, whole), BH_OK);
    bh_directory_publish(f.core.catalog);
    report = NULL;
    return 0;
}

static int
close_site(void **state)
{
    fixture_teardown(&f);
    return 0;
}

/* ---- looking ---- */

static struct bh_observation seen;
static struct bh_arena *names;

static void
observer_test_look(struct bh_observer *observer, uint32_t monotonic_s)
{
    struct bh_err err;

    bh_observation_fini(&seen);
    if (!names)
        names = bh_arena_new(1 << 20);
    bh_observation_init(&seen, names);
    assert_int_equal(bh_observer_observe(observer, &owner, monotonic_s * BH_NS_PER_S, &seen, &err), BH_OK);
}

/* -1: not seen. */
static int64_t
value_of(enum bh_series_row row)
{
    for (uint32_t i = 0; i < seen.count; i++)
        if (seen.values[i].row == row)
            return (int64_t)seen.values[i].value;
    return -1;
}

static void
reports_become_values(void **state)
{
    static const struct {
        const char *name, *gpu, *sample;
        enum bh_series_row row;
        int64_t value;
    } cases[] = {
        { "temperature", ",\"temperature_c\":41", "", BH_SERIES_GPU_TEMPERATURE, 41 },
        { "no sensor of it", "", "", BH_SERIES_GPU_TEMPERATURE, -1 },
        { "power", ",\"power_mw\":70125", "", BH_SERIES_GPU_POWER, 70125 },
        { "no sensor of it", "", "", BH_SERIES_GPU_POWER, -1 },
        { "busy, by GPM", ",\"busy_bp\":1234,\"utilisation\":99", "", BH_SERIES_GPU_BUSY, 1234 },
        { "busy, as the driver says", ",\"busy_bp\":4294967295,\"utilisation\":37", "", BH_SERIES_GPU_BUSY,
          3700 },
        { "neither is known", ",\"busy_bp\":4294967295,\"utilisation\":255", "", BH_SERIES_GPU_BUSY, -1 },
        { "idle: reports leave out what is 0", "", "", BH_SERIES_GPU_BUSY, 0 },
        { "SMs", ",\"sm_bp\":4205", "", BH_SERIES_GPU_SM, 4205 },
        { "SMs are not known", ",\"sm_bp\":4294967295", "", BH_SERIES_GPU_SM, -1 },
        { "memory in use", ",\"memory_used_mib\":512", "", BH_SERIES_GPU_MEMORY, 512 },
        { "the node's power", ",\"power_mw\":70125", "", BH_SERIES_NODE_POWER, 70125 },
        { "a board without it", "", "", BH_SERIES_NODE_POWER, -1 },
        { "a job's GPU memory", "", ",\"gpu_memory_mib\":7", BH_SERIES_JOB_GPU_MEMORY, 7 },
        { "its memory", "", ",\"memory_bytes\":3145728", BH_SERIES_JOB_MEMORY, 3 },
        { "its use", "", ",\"gpu_utilisation\":50", BH_SERIES_JOB_BUSY, 5000 },
        { "its use is 0", "", "", BH_SERIES_JOB_BUSY, 0 },
        { "its use is not known", "", ",\"gpu_utilisation\":255", BH_SERIES_JOB_BUSY, -1 },
        { "the power of its GPU", ",\"power_mw\":70125", "", BH_SERIES_JOB_POWER, 70125 },
        { "CPU: there was no sample before", "", ",\"cpu_ns\":5", BH_SERIES_JOB_CPU, -1 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_observer *observer = bh_observer_new();

        report = observer_test_report(100, cases[i].gpu, cases[i].sample);
        observer_test_look(observer, 100);
        BH_CHECK_EQ(cases[i].name, value_of(cases[i].row), cases[i].value);
        bh_observer_free(observer);
    }
    BH_CHECK_DONE();
}

static void
cpu_time_becomes_a_rate(void **state)
{
    struct bh_observer *observer = bh_observer_new();

    report = observer_test_report(100, "", ",\"cpu_ns\":1000000000");
    observer_test_look(observer, 100);
    report = observer_test_report(105, "", ",\"cpu_ns\":8500000000");
    observer_test_look(observer, 105);
    BH_CHECK_EQ("one core and a half", value_of(BH_SERIES_JOB_CPU), 1500);
    observer_test_look(observer, 110);
    BH_CHECK_EQ("the same report again", value_of(BH_SERIES_JOB_CPU), -1);
    report = observer_test_report(103, "", ",\"cpu_ns\":9500000000");
    observer_test_look(observer, 115);
    BH_CHECK_EQ("the node's clock stepped back", value_of(BH_SERIES_JOB_CPU), -1);
    report = observer_test_report(108, "", ",\"cpu_ns\":400000000");
    observer_test_look(observer, 120);
    BH_CHECK_EQ("less than before", value_of(BH_SERIES_JOB_CPU), -1);
    bh_observer_free(observer);
    BH_CHECK_DONE();
}

/* A node that is silent has no samples, rather than its last for ever. */
static void
old_reports_are_no_samples(void **state)
{
    struct bh_observer *observer = bh_observer_new();

    report = observer_test_report(100, ",\"temperature_c\":41", "");
    observer_test_look(observer, 1000);
    observer_test_look(observer, 1030);
    BH_CHECK_EQ("half a minute", value_of(BH_SERIES_GPU_TEMPERATURE), 41);
    observer_test_look(observer, 1031);
    BH_CHECK_EQ("longer", value_of(BH_SERIES_GPU_TEMPERATURE), -1);
    BH_CHECK_EQ("nor its jobs", value_of(BH_SERIES_JOB_MEMORY), -1);
    BH_CHECK_EQ("what the engine knows is known: one GPU",
                value_of(BH_SERIES_SITE_LEASED) + value_of(BH_SERIES_SITE_IDLE)
                    + value_of(BH_SERIES_SITE_UNUSABLE),
                4200);
    report = observer_test_report(101, ",\"temperature_c\":42", "");
    observer_test_look(observer, 1032);
    BH_CHECK_EQ("it speaks again", value_of(BH_SERIES_GPU_TEMPERATURE), 42);
    report = NULL;
    observer_test_look(observer, 1033);
    BH_CHECK_EQ("it is gone", value_of(BH_SERIES_GPU_TEMPERATURE), -1);
    BH_CHECK_EQ("tenants", value_of(BH_SERIES_TENANT_PARTS), 4200);
    bh_observer_free(observer);
    BH_CHECK_DONE();
}

/* ---- batches ---- */

static struct {
    bh_rc rc;
    uint32_t batches, samples;
    struct bh_point first;
} kept;

static bh_rc
observer_test_write(void *self, const struct bh_series_batch *batch, struct bh_err *err)
{
    kept.batches++;
    kept.samples = batch->sample_count;
    for (uint32_t i = 0; i < batch->sample_count; i++)
        if (batch->samples[i].row == BH_SERIES_SITE_LEASED)
            kept.first = batch->samples[i].point;
    return kept.rc == BH_OK ? BH_OK : bh_err_set(err, kept.rc, "no room");
}

static bh_rc
observer_test_prune(void *self, const struct bh_series_limits *limits, struct bh_err *err)
{
    return BH_OK;
}

/* Looks of one interval are one sample, and what could not be written is not written later. */
static void
looks_are_written_in_batches(void **state)
{
    static const struct bh_series_store_ops store = { .write = observer_test_write,
                                                      .prune = observer_test_prune };
    const struct bh_recorder_options options = {
        .owner = owner, .store = { &store, NULL }, .state_dir = "/", .retention_ns = 1, .jobs_max = 1
    };
    struct bh_recorder *recorder = bh_recorder_new(&options);

    memset(&kept, 0, sizeof kept);
    bh_recorder_tick_at(recorder, 100 * BH_NS_PER_S);
    BH_CHECK_EQ("the first at once", kept.batches, 1);
    BH_CHECK_EQ("one look", kept.first.count, 1);
    bh_recorder_tick_at(recorder, 105 * BH_NS_PER_S);
    BH_CHECK_EQ("the next is not due", kept.batches, 1);
    kept.rc = BH_FULL;
    bh_recorder_tick_at(recorder, 1000 * BH_NS_PER_S);
    BH_CHECK_EQ("tried", kept.batches, 2);
    BH_CHECK_EQ("both looks as one sample", kept.first.count, 2);
    kept.rc = BH_OK;
    bh_recorder_tick_at(recorder, 2000 * BH_NS_PER_S);
    BH_CHECK_EQ("what was lost is lost", kept.first.count, 1);
    bh_recorder_tick_at(recorder, 2001 * BH_NS_PER_S);
    bh_recorder_free(recorder);
    BH_CHECK_EQ("the last at the end", kept.batches, 4);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(reports_become_values, open_site, close_site),
    cmocka_unit_test_setup_teardown(cpu_time_becomes_a_rate, open_site, close_site),
    cmocka_unit_test_setup_teardown(old_reports_are_no_samples, open_site, close_site),
    cmocka_unit_test_setup_teardown(looks_are_written_in_batches, open_site, close_site),
};

BH_TEST_MAIN(tests)
