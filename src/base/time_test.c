#include "base/time.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "base/test.h"

static const struct {
    const char *name;
    bh_ns at;
    const char *text;
    uint32_t month;
} instants[] = {
    { "the epoch", 0, "1970-01-01T00:00:00Z", 197001 },
    { "just before a second", 999999999, "1970-01-01T00:00:00Z", 197001 },
    { "leap day", 1709164800 * BH_NS_PER_S, "2024-02-29T00:00:00Z", 202402 },
    { "just before a month", 1793491200 * BH_NS_PER_S - 1, "2026-10-31T23:59:59Z", 202610 },
    { "a month begins", 1793491200 * BH_NS_PER_S, "2026-11-01T00:00:00Z", 202611 },
    { "a day in November", 1795166820 * BH_NS_PER_S, "2026-11-20T09:27:00Z", 202611 },
    { "past 2038", 2147483648 * BH_NS_PER_S, "2038-01-19T03:14:08Z", 203801 },
    { "last", UINT64_MAX, "2554-07-21T23:34:33Z", 255407 },
};

static void
test_utc(void **state)
{
    for (size_t i = 0; i < BH_COUNT(instants); i++) {
        char memory[64];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_time_put_utc(&out, instants[i].at);
        BH_CHECK_STR(instants[i].name, bh_buf_text(&out), instants[i].text);
        BH_CHECK_EQ(instants[i].name, bh_time_month(instants[i].at), instants[i].month);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    uint64_t seconds;
    const char *text;
} spans[] = {
    { "none", 0, "0s" },
    { "seconds", 59, "59s" },
    { "a minute", 60, "1m00s" },
    { "minutes", 725, "12m05s" },
    { "just under an hour", 3599, "59m59s" },
    { "an hour", 3600, "1h00m" },
    { "hours", 11220, "3h07m" },
    { "just under a day", 86399, "23h59m" },
    { "a day", 86400, "1d00h" },
    { "days", 187200, "2d04h" },
};

static void
test_span(void **state)
{
    for (size_t i = 0; i < BH_COUNT(spans); i++) {
        char memory[64];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_time_put_span(&out, spans[i].seconds * BH_NS_PER_S + 999999999);
        BH_CHECK_STR(spans[i].name, bh_buf_text(&out), spans[i].text);
    }
    BH_CHECK_DONE();
}

static void
test_clocks(void **state)
{
    bh_ns before = bh_time_monotonic(), after;

    bh_time_sleep(2 * BH_NS_PER_MS);
    after = bh_time_monotonic();
    BH_CHECK("slept long enough", after - before >= 2 * BH_NS_PER_MS);
    BH_CHECK("the wall clock is past 2024", bh_time_now() > 1704067200 * BH_NS_PER_S);
    BH_CHECK_DONE();
}

static void
ignore_signal(int number)
{
}

/* Signals come every 2 ms: the sleep goes on. */
static void
test_sleep_outlasts_signals(void **state)
{
    const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    const struct sigaction act = { .sa_handler = ignore_signal };
    bh_ns before = bh_time_monotonic();

    assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    bh_time_sleep(20 * BH_NS_PER_MS);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    BH_CHECK("slept long enough", bh_time_monotonic() - before >= 20 * BH_NS_PER_MS);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_utc), cmocka_unit_test(test_span),
                                           cmocka_unit_test(test_clocks),
                                           cmocka_unit_test(test_sleep_outlasts_signals) };

BH_TEST_MAIN(tests)
