/* Engine time beside a wall clock that steps, on clocks that the test moves. */

#include "daemon/journal/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"

#define S ((int64_t)BH_NS_PER_S)
#define HOUR (3600 * S)
#define EPOCH (INT64_C(1700000000) * S)

static int64_t boot_ns, wall_ns;

static bh_ns
fake_boot(void)
{
    return (bh_ns)boot_ns;
}

static bh_ns
fake_wall(void)
{
    return (bh_ns)wall_ns;
}

static char folder[40];

static void
clock_begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/bh-clock-XXXXXX");
    assert_non_null(mkdtemp(folder));
    boot_ns = 100 * S;
    wall_ns = EPOCH;
}

static void
clock_end(void)
{
    char path[60];

    snprintf(path, sizeof path, "%s/clock", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/heard", folder);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

static struct bh_clock
open_clock(const char *boot_id)
{
    struct bh_clock clock = { .source = { fake_boot, fake_wall, "" } };
    struct bh_err err;

    snprintf(clock.source.boot_id, sizeof clock.source.boot_id, "%s", boot_id);
    assert_int_equal(bh_clock_open(&clock, folder, &err), BH_OK);
    return clock;
}

/* Both clocks go on, with a turn each second. */
static void
clock_pass(struct bh_clock *clock, int64_t span)
{
    for (; span > 0; span -= S) {
        boot_ns += S;
        wall_ns += S;
        bh_clock_tick(clock);
    }
}

static int64_t
now(const struct bh_clock *clock)
{
    return (int64_t)bh_clock_now(clock) - EPOCH;
}

/* What a step of the wall clock does to an hour of engine time. */
static void
test_steps(void **state)
{
    static const struct {
        const char *name;
        int64_t step, back_after, least, most;
    } cases[] = {
        { "none", 0, 0, HOUR, HOUR },
        { "2 h ahead for 5 s", 2 * HOUR, 5 * S, HOUR, HOUR + S / 10 },
        { "2 h ahead and stays", 2 * HOUR, 0, HOUR, HOUR + HOUR / 100 },
        { "2 h back and stays", -2 * HOUR, 0, HOUR - HOUR / 100, HOUR },
        { "to 1970", -EPOCH, 0, HOUR - HOUR / 100, HOUR },
        { "10 s ahead is caught up", 10 * S, 0, HOUR + 10 * S, HOUR + 10 * S },
        { "10 s back is waited for", -10 * S, 0, HOUR - 10 * S, HOUR - 10 * S },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_clock clock;

        clock_begin();
        clock = open_clock("one");
        wall_ns += cases[i].step;
        clock_pass(&clock, cases[i].back_after);
        if (cases[i].back_after)
            wall_ns -= cases[i].step;
        clock_pass(&clock, HOUR - cases[i].back_after);
        BH_CHECK(cases[i].name, now(&clock) >= cases[i].least && now(&clock) <= cases[i].most);
        BH_CHECK_EQ(cases[i].name, clock.offset_ns, wall_ns - EPOCH - now(&clock));
        clock_end();
    }
    BH_CHECK_DONE();
}

/* ---- what the log has of steps ---- */

static int kept_stderr, log_fd;

static void
begin_log(void)
{
    log_fd = fileno(tmpfile());
    kept_stderr = dup(STDERR_FILENO);
    assert_int_equal(dup2(log_fd, STDERR_FILENO), STDERR_FILENO);
}

/* The lines since, up to a small file's worth. */
static const char *
end_log(void)
{
    static char text[4096];
    ssize_t got = pread(log_fd, text, sizeof text - 1, 0);

    dup2(kept_stderr, STDERR_FILENO);
    close(kept_stderr);
    close(log_fd);
    assert_true(got >= 0);
    text[got] = '\0';
    return text;
}

static int
count_lines(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* A step is a line with its size, at most one in 10 s; the lead that is made up is none. */
static void
test_log(void **state)
{
    static const struct {
        const char *name;
        int64_t step;
        int times, apart_s, lines;
        const char *said;
    } cases[] = {
        { "none", 0, 3, 1, 0, "" },
        { "half a second is none", S / 2, 1, 1, 0, "" },
        { "more than that", S / 2 + 1, 1, 1, 1, "by=\"+500 ms\" ahead=\"+500 ms\"\n" },
        { "2 h ahead, then nothing more", 2 * HOUR, 1, 60, 1, "by=\"+7200000 ms\" ahead=\"+7200000 ms\"\n" },
        { "2 h back", -2 * HOUR, 1, 1, 1, "by=\"-7200000 ms\" ahead=\"-7200000 ms\"\n" },
        { "one each second for a minute", HOUR, 60, 1, 6, "by=\"+3600000 ms\" ahead=\"+3600000 ms\"\n" },
        { "one in 10 s", HOUR, 3, 10, 3, "by=\"+3600000 ms\" ahead=\"+7199900 ms\"\n" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_clock clock;
        const char *text;

        clock_begin();
        clock = open_clock("one");
        begin_log();
        for (int n = 0; n < cases[i].times; n++) {
            wall_ns += cases[i].step;
            clock_pass(&clock, cases[i].apart_s * S);
        }
        text = end_log();
        BH_CHECK_EQ(cases[i].name, count_lines(text), cases[i].lines);
        BH_CHECK(cases[i].name, strstr(text, cases[i].said) != NULL);
        clock_end();
    }
    BH_CHECK_DONE();
}

/* It never goes back, however the wall clock jumps about. */
static void
test_never_back(void **state)
{
    struct bh_clock clock;
    uint32_t random = 1;
    int64_t before = 0;

    clock_begin();
    clock = open_clock("one");
    for (int turn = 0; turn < 20000; turn++) {
        random = random * 1103515245 + 12345;
        boot_ns += random >> 12;
        wall_ns = EPOCH + (int64_t)(random % 100000) * S - 50000 * S;
        BH_CHECK("before the turn", now(&clock) >= before);
        bh_clock_tick(&clock);
        BH_CHECK("after it", now(&clock) >= before);
        before = now(&clock);
    }
    clock_end();
    BH_CHECK_DONE();
}

/* What counts when the daemon comes back. */
static void
test_restarts(void **state)
{
    static const struct {
        const char *name, *boot_id;
        int64_t away, step, boots_anew, last_record, expected;
    } cases[] = {
        { "an outage counts", "one", HOUR, 0, 0, 0, HOUR },
        { "not a step in it", "one", HOUR, 2 * HOUR, 0, 0, HOUR },
        { "nor one back", "one", HOUR, -2 * HOUR, 0, 0, HOUR },
        { "another boot: the wall clock", "two", HOUR, 60 * S, 1, 0, HOUR + 60 * S },
        { "never before the last record", "two", HOUR, -2 * HOUR, 1, S, S },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_clock clock;

        clock_begin();
        clock = open_clock("one");
        wall_ns += cases[i].away + cases[i].step;
        boot_ns = cases[i].boots_anew ? 3 * S : boot_ns + cases[i].away;
        clock = open_clock(cases[i].boot_id);
        bh_clock_raise(&clock, (bh_ns)(EPOCH + cases[i].last_record));
        BH_CHECK_EQ(cases[i].name, now(&clock), cases[i].expected);
        boot_ns += S;
        BH_CHECK_EQ("and goes on", now(&clock), cases[i].expected + S);
        clock_end();
    }
    BH_CHECK_DONE();
}

/* A machine that was suspended: CLOCK_BOOTTIME went on. */
static void
test_suspend(void **state)
{
    struct bh_clock clock;

    clock_begin();
    clock = open_clock("one");
    boot_ns += 8 * HOUR;
    wall_ns += 8 * HOUR;
    bh_clock_tick(&clock);
    BH_CHECK_EQ("counts", now(&clock), 8 * HOUR);
    BH_CHECK_EQ("is no step", clock.offset_ns, 0);
    clock_end();
    BH_CHECK_DONE();
}

/* The latest time that the previous daemon can have reported. */
static void
test_saved(void **state)
{
    static const struct {
        const char *name;
        const char *boot_id;
        int64_t lived, away, saved; /* of when it ended */
    } cases[] = {
        { "a second more than its last turn", "one", 10 * S, HOUR, S },
        { "not later than now", "one", 10 * S, S / 2, S / 2 },
        { "over a boot, too", "two", 10 * S, HOUR, S },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_clock clock;
        int64_t ended;

        clock_begin();
        clock = open_clock("one");
        BH_CHECK_EQ("nothing yet", bh_clock_last_saved(&clock), S);
        clock_pass(&clock, cases[i].lived);
        ended = (int64_t)bh_clock_now(&clock);
        boot_ns += cases[i].away;
        wall_ns += cases[i].away;
        clock = open_clock(cases[i].boot_id);
        BH_CHECK_EQ(cases[i].name, (int64_t)bh_clock_last_saved(&clock) - ended, cases[i].saved);
        clock_end();
    }
    BH_CHECK_DONE();
}

/* A file that is damaged is as none. */
static void
test_damaged(void **state)
{
    static const char *const texts[] = { "", "one", "one x", "\n", "two 5\n" };

    for (size_t i = 0; i < BH_COUNT(texts); i++) {
        struct bh_clock clock;
        char path[60];
        FILE *file;

        clock_begin();
        snprintf(path, sizeof path, "%s/clock", folder);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(texts[i], file);
        fclose(file);
        clock = open_clock("one");
        BH_CHECK_EQ(texts[i], now(&clock), 0);
        clock_end();
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_steps),   cmocka_unit_test(test_never_back), cmocka_unit_test(test_restarts),
    cmocka_unit_test(test_suspend), cmocka_unit_test(test_damaged),    cmocka_unit_test(test_saved),
    cmocka_unit_test(test_log),
};
BH_TEST_MAIN(tests)
