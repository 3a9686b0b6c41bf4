#include "store/series.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"

#define AT(seconds) ((uint64_t)(seconds)*BH_NS_PER_S)
#define NOON 1800000000 /* a whole quarter of an hour */
#define MONTH AT(31 * 86400)
enum { JOBS = 2000 };

static const struct bh_series_object gpu = { BH_SERIES_KIND_GPU, "GPU-a", 0 };

struct fixture {
    char folder[40], path[64];
    struct bh_series_store store;
    bool emptied;
    struct bh_err err;
    struct bh_point points[4096];
    uint64_t intervals[4096];
    uint32_t count;
};

static struct fixture f;

static bh_rc
series_test_open(const char *log)
{
    f.emptied = false;
    return bh_store_series_open(f.path, log, &f.store, &f.emptied, &f.err);
}

static int
open_folder(void **state)
{
    memset(&f, 0, sizeof f);
    memcpy(f.folder, "/tmp/bh-series-XXXXXX", 22);
    if (!mkdtemp(f.folder))
        return 1;
    snprintf(f.path, sizeof f.path, "%s/series.db", f.folder);
    return series_test_open("log") == BH_OK ? 0 : 1;
}

static int
close_folder(void **state)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    char path[80];

    f.store.ops->close(f.store.self);
    for (size_t i = 0; i < BH_COUNT(endings); i++) {
        snprintf(path, sizeof path, "%s%s", f.path, endings[i]);
        unlink(path);
    }
    return rmdir(f.folder);
}

static void
reopen(const char *log)
{
    f.store.ops->close(f.store.self);
    assert_int_equal(series_test_open(log), BH_OK);
}

/* One sample at a moment. */
static bh_rc
write_one(const struct bh_series_object *object, enum bh_series_row row, uint64_t at_s, uint64_t value)
{
    struct bh_series_sample sample = { .row = row,
                                       .interval = bh_series_interval(BH_RESOLUTION_FINE, AT(at_s)) };
    const struct bh_series_batch batch = { object, &sample, 1, 1, AT(at_s) };

    bh_point_add(&sample.point, value);
    return f.store.ops->write(f.store.self, &batch, &f.err);
}

static bool
keep_point(void *self, uint64_t interval, const struct bh_point *point)
{
    f.intervals[f.count] = interval;
    f.points[f.count++] = *point;
    return f.count < BH_COUNT(f.points);
}

/* What is between two moments; how many points. */
static uint32_t
read_between(const struct bh_series_object *object, enum bh_series_row row, enum bh_resolution resolution,
             const uint64_t seconds[2])
{
    const struct bh_series_query query = { *object, row, resolution,
                                           bh_series_interval(resolution, AT(seconds[0])),
                                           bh_series_interval(resolution, AT(seconds[1])) };

    f.count = 0;
    assert_int_equal(f.store.ops->read(f.store.self, &query, keep_point, NULL, &f.err), BH_OK);
    return f.count;
}
#define READ(object, row, resolution, from, to)                                                              \
    read_between(object, row, BH_RESOLUTION_##resolution, (const uint64_t[]){ from, to })

static void
prune(uint64_t now_s, uint32_t jobs_max, uint32_t tenant_jobs_max)
{
    const struct bh_series_limits limits = { AT(now_s), MONTH, jobs_max, tenant_jobs_max };

    assert_int_equal(f.store.ops->prune(f.store.self, &limits, &f.err), BH_OK);
}

static void
samples_are_in_three_resolutions(void **state)
{
    for (uint32_t i = 0; i < 180; i++) /* half an hour, a sample every ten seconds */
        assert_int_equal(write_one(&gpu, BH_SERIES_GPU_POWER, NOON + 10 * i, 1000 + i), BH_OK);
    BH_CHECK_EQ("fine", READ(&gpu, BH_SERIES_GPU_POWER, FINE, NOON, NOON + 1799), 180);
    BH_CHECK_EQ("the first", f.points[0].min, 1000);
    BH_CHECK_EQ("medium", READ(&gpu, BH_SERIES_GPU_POWER, MEDIUM, NOON, NOON + 1799), 30);
    BH_CHECK_EQ("six samples", f.points[3].count, 6);
    BH_CHECK_EQ("least", f.points[3].min, 1018);
    BH_CHECK_EQ("most", f.points[3].max, 1023);
    BH_CHECK_EQ("coarse", READ(&gpu, BH_SERIES_GPU_POWER, COARSE, NOON, NOON + 1799), 2);
    BH_CHECK_EQ("ninety samples", f.points[1].count, 90);
    BH_CHECK_EQ("their mean", bh_point_mean(&f.points[1]), 1134);
    BH_CHECK_EQ("a part of it", READ(&gpu, BH_SERIES_GPU_POWER, FINE, NOON + 100, NOON + 129), 3);
    BH_CHECK_EQ("of another quantity", READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON, NOON + 1799), 0);
    BH_CHECK_DONE();
}

/* A minute without samples has no point: not one of 0. */
static void
gaps_stay_gaps(void **state)
{
    write_one(&gpu, BH_SERIES_GPU_POWER, NOON, 5);
    write_one(&gpu, BH_SERIES_GPU_POWER, NOON + 120, 0);
    BH_CHECK_EQ("two points", READ(&gpu, BH_SERIES_GPU_POWER, MEDIUM, NOON, NOON + 300), 2);
    BH_CHECK_EQ("with a gap between", f.intervals[1] - f.intervals[0], 2);
    BH_CHECK_EQ("a sample of 0 counts", f.points[1].count, 1);
    BH_CHECK_DONE();
}

static void
points_go_on_after_a_restart(void **state)
{
    write_one(&gpu, BH_SERIES_GPU_BUSY, NOON, 100);
    reopen("log");
    BH_CHECK("kept", !f.emptied);
    write_one(&gpu, BH_SERIES_GPU_BUSY, NOON + 5, 300);
    BH_CHECK_EQ("one point", READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON, NOON + 9), 1);
    BH_CHECK_EQ("of both samples", f.points[0].count, 2);
    BH_CHECK_EQ("their mean", bh_point_mean(&f.points[0]), 200);
    BH_CHECK_DONE();
}

/* A process that is killed leaves what it wrote, whole. */
static void
what_was_written_outlives_a_kill(void **state)
{
    pid_t pid;
    int status;

    f.store.ops->close(f.store.self);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (series_test_open("log") == BH_OK && write_one(&gpu, BH_SERIES_GPU_BUSY, NOON, 4711) == BH_OK)
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(series_test_open("log"), BH_OK);
    assert_int_equal(READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON, NOON), 1);
    assert_int_equal(f.points[0].max, 4711);
}

static void
clocks_may_step(void **state)
{
    for (uint32_t i = 0; i < 10; i++)
        write_one(&gpu, BH_SERIES_GPU_BUSY, NOON + 10 * i, 1);
    for (uint32_t i = 0; i < 10; i++) /* an hour back, where nothing is, and on into what there is */
        write_one(&gpu, BH_SERIES_GPU_BUSY, NOON - 3600 + 10 * i, 2);
    write_one(&gpu, BH_SERIES_GPU_BUSY, NOON + 50, 3);
    BH_CHECK_EQ("nothing is lost", READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON, NOON + 99), 10);
    BH_CHECK_EQ("twice at the same time", f.points[5].count, 2);
    BH_CHECK_EQ("both", f.points[5].max, 3);
    BH_CHECK_EQ("the earlier hour", READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON - 3600, NOON - 3501), 10);
    write_one(&gpu, BH_SERIES_GPU_BUSY, NOON + 40000000, 9); /* far ahead, and back */
    prune(NOON + 100, 100, 100);
    BH_CHECK_EQ("still there", READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON, NOON + 99), 10);
    BH_CHECK_DONE();
}

static void
what_is_old_goes(void **state)
{
    static const struct bh_series_object old = { BH_SERIES_KIND_JOB, "7", 3 };

    write_one(&gpu, BH_SERIES_GPU_BUSY, NOON, 1);
    write_one(&old, BH_SERIES_JOB_BUSY, NOON, 1);
    prune(NOON + 5000, 100, 100);
    BH_CHECK_EQ("fine, after an hour", READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON, NOON), 0);
    BH_CHECK_EQ("medium stays", READ(&gpu, BH_SERIES_GPU_BUSY, MEDIUM, NOON, NOON), 1);
    prune(NOON + 2 * 86400, 100, 100);
    BH_CHECK_EQ("medium, after a day", READ(&gpu, BH_SERIES_GPU_BUSY, MEDIUM, NOON, NOON), 0);
    BH_CHECK_EQ("coarse stays", READ(&gpu, BH_SERIES_GPU_BUSY, COARSE, NOON, NOON), 1);
    prune(NOON + 41 * 86400, 100, 100);
    BH_CHECK_EQ("coarse, as the setting says", READ(&gpu, BH_SERIES_GPU_BUSY, COARSE, NOON, NOON), 0);
    BH_CHECK_EQ("the job's, too", READ(&old, BH_SERIES_JOB_BUSY, COARSE, NOON, NOON), 0);
    BH_CHECK_DONE();
}

/* Jobs 1 to `count` of a tenant, each ten seconds after the one before. */
static void
write_jobs(uint32_t tenant, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < from + count; i++) {
        char name[16];
        const struct bh_series_object job = { BH_SERIES_KIND_JOB, name, tenant };

        snprintf(name, sizeof name, "%u", i);
        assert_int_equal(write_one(&job, BH_SERIES_JOB_BUSY, NOON + 10 * i, i), BH_OK);
    }
}

static bool
has_job(const char *name, uint32_t tenant)
{
    const struct bh_series_object job = { BH_SERIES_KIND_JOB, name, tenant };

    return READ(&job, BH_SERIES_JOB_BUSY, COARSE, NOON, NOON + 4000) > 0;
}

static void
jobs_are_bounded(void **state)
{
    write_jobs(1, 1, 10);
    write_jobs(2, 20, 4);
    write_one(&gpu, BH_SERIES_GPU_BUSY, NOON, 1);
    prune(NOON + 300, 100, 5);
    BH_CHECK("a tenant's oldest went", !has_job("5", 1));
    BH_CHECK("its newest stay", has_job("6", 1) && has_job("10", 1));
    BH_CHECK("another tenant's stay", has_job("20", 2) && has_job("23", 2));
    prune(NOON + 300, 3, 5);
    BH_CHECK("of all the oldest", !has_job("10", 1) && !has_job("20", 2));
    BH_CHECK("the three newest", has_job("21", 2) && has_job("22", 2) && has_job("23", 2));
    BH_CHECK_EQ("what is no job's", READ(&gpu, BH_SERIES_GPU_BUSY, COARSE, NOON, NOON), 1);
    BH_CHECK_DONE();
}

/* A store that is put back from a copy gives a job's number out a second time. */
static void
another_tenants_number_shows_nothing(void **state)
{
    static const struct bh_series_object before = { BH_SERIES_KIND_JOB, "7", 1 };
    static const struct bh_series_object after = { BH_SERIES_KIND_JOB, "7", 2 };

    write_one(&before, BH_SERIES_JOB_BUSY, NOON, 1);
    BH_CHECK_EQ("asked for", READ(&after, BH_SERIES_JOB_BUSY, COARSE, NOON, NOON), 0);
    write_one(&after, BH_SERIES_JOB_BUSY, NOON + 10, 2);
    BH_CHECK_EQ("its own alone", READ(&after, BH_SERIES_JOB_BUSY, FINE, NOON, NOON + 60), 1);
    BH_CHECK_EQ("the other's is gone", READ(&before, BH_SERIES_JOB_BUSY, FINE, NOON, NOON + 60), 0);
    reopen("another log");
    BH_CHECK("of another log: emptied", f.emptied);
    BH_CHECK_EQ("nothing", READ(&after, BH_SERIES_JOB_BUSY, FINE, NOON, NOON + 60), 0);
    BH_CHECK_DONE();
}

static void
damage_is_made_anew(void **state)
{
    BH_AUTO(bh_fd_close) int fd = -1;

    write_one(&gpu, BH_SERIES_GPU_BUSY, NOON, 1);
    f.store.ops->close(f.store.self);
    assert_int_equal(bh_file_open(f.path, O_WRONLY, 0600, &fd, &f.err), BH_OK);
    assert_int_equal(pwrite(fd, "this is no database, it is a text of someone", 44, 0), 44);
    assert_int_equal(series_test_open("log"), BH_OK);
    assert_true(f.emptied);
    assert_int_equal(write_one(&gpu, BH_SERIES_GPU_BUSY, NOON, 1), BH_OK);
    assert_int_equal(READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON, NOON), 1);
}

/* A file that may not grow refuses a batch whole, keeps what it has, and takes batches again when it may. */
static void
a_full_disk_loses_one_batch(void **state)
{
    static char names[JOBS][16];
    static struct bh_series_object objects[JOBS];
    static struct bh_series_sample samples[JOBS];
    const struct bh_series_batch batch = { objects, samples, JOBS, JOBS, AT(NOON + 60) };
    struct rlimit before, small;

    for (uint32_t i = 0; i < JOBS; i++) {
        snprintf(names[i], sizeof names[i], "%u", i + 1);
        objects[i] = (struct bh_series_object){ BH_SERIES_KIND_JOB, names[i], 1 };
        samples[i] =
            (struct bh_series_sample){ .object = i, .row = BH_SERIES_JOB_BUSY, .interval = 180000006 };
        bh_point_add(&samples[i].point, 1);
    }
    write_one(&gpu, BH_SERIES_GPU_BUSY, NOON, 5);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ 256 << 10, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    BH_CHECK_EQ("refused", f.store.ops->write(f.store.self, &batch, &f.err), BH_FULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    BH_CHECK("nothing of it", !has_job("1", 1) && !has_job("2000", 1));
    BH_CHECK_EQ("what was before", READ(&gpu, BH_SERIES_GPU_BUSY, FINE, NOON, NOON), 1);
    BH_CHECK_EQ("taken now", f.store.ops->write(f.store.self, &batch, &f.err), BH_OK);
    BH_CHECK("all of it", has_job("1", 1) && has_job("2000", 1));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)
    TEST(samples_are_in_three_resolutions),
    TEST(gaps_stay_gaps),
    TEST(points_go_on_after_a_restart),
    TEST(what_was_written_outlives_a_kill),
    TEST(clocks_may_step),
    TEST(what_is_old_goes),
    TEST(jobs_are_bounded),
    TEST(another_tenants_number_shows_nothing),
    TEST(damage_is_made_anew),
    TEST(a_full_disk_loses_one_batch),
};

BH_TEST_MAIN(tests)
