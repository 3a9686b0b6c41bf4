#include "model/period.h"

#include "base/attr.h"
#include "base/test.h"
#include "base/time.h"

/* 2024-02-29T12:00:00Z and the like, as `date -u -d ... +%s` says. */
static void
periods_follow_the_calendar(void **state)
{
    static const struct {
        const char *name;
        enum bh_period period;
        uint64_t at_s, begin_s, end_s;
    } cases[] = {
        { "the first day there is", BH_PERIOD_DAY, 0, 0, 86400 },
        { "its last second", BH_PERIOD_DAY, 86399, 0, 86400 },
        { "a day", BH_PERIOD_DAY, 1709208000, 1709164800, 1709251200 },
        { "the week cut short by the epoch", BH_PERIOD_WEEK, 0, 0, 345600 },
        { "the first whole week", BH_PERIOD_WEEK, 345600, 345600, 950400 },
        { "a Thursday's week", BH_PERIOD_WEEK, 1709208000, 1708905600, 1709510400 },
        { "January 1970", BH_PERIOD_MONTH, 5, 0, 2678400 },
        { "February of a leap year", BH_PERIOD_MONTH, 1709208000, 1706745600, 1709251200 },
        { "February of 2100, no leap year", BH_PERIOD_MONTH, 4107542399, 4105123200, 4107542400 },
        { "a December", BH_PERIOD_MONTH, 1703980800, 1701388800, 1704067200 },
        { "November 2026", BH_PERIOD_MONTH, 1795132800, 1793491200, 1796083200 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        uint64_t at_ns = cases[i].at_s * BH_NS_PER_S;

        BH_CHECK_EQ(cases[i].name, bh_period_begin_ns(cases[i].period, at_ns) / BH_NS_PER_S,
                    cases[i].begin_s);
        BH_CHECK_EQ(cases[i].name, bh_period_end_ns(cases[i].period, at_ns) / BH_NS_PER_S, cases[i].end_s);
    }
    BH_CHECK_DONE();
}

/* Each period begins where the one before ends, for two hundred years. */
static void
periods_leave_no_gap(void **state)
{
    for (enum bh_period period = BH_PERIOD_DAY; period < BH_PERIODS; period++) {
        uint64_t at_ns = 0, last_ns = (uint64_t)200 * 366 * 86400 * BH_NS_PER_S;

        while (at_ns < last_ns) {
            uint64_t end_ns = bh_period_end_ns(period, at_ns);

            assert_true(end_ns > at_ns);
            assert_int_equal(bh_period_begin_ns(period, end_ns - 1), at_ns);
            assert_int_equal(bh_period_begin_ns(period, end_ns), end_ns);
            at_ns = end_ns;
        }
    }
    assert_int_equal(bh_period_end_ns(BH_PERIOD_NONE, 7), UINT64_MAX);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(periods_follow_the_calendar),
    cmocka_unit_test(periods_leave_no_gap),
};
BH_TEST_MAIN(tests)
