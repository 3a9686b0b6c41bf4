#include "model/period.h"

#include "base/assert.h"
#include "base/time.h"

#define DAY_NS (86400 * BH_NS_PER_S)

const char *const bh_period_names[BH_PERIODS] = {
    [BH_PERIOD_NONE] = "none",
    [BH_PERIOD_DAY] = "day",
    [BH_PERIOD_WEEK] = "week",
    [BH_PERIOD_MONTH] = "month",
};

enum {
    ERA_DAYS = 146097, /* of 400 Gregorian years */
    EPOCH_DAY = 719468 /* 1970-01-01, counted from 0000-03-01 */
};

/* Day of the month, from 0, and days in that month.  Years are counted from March, so that
 * the leap day is the last of a year (Hinnant, "chrono-compatible low-level date
 * algorithms"). */
static void
month_of(uint64_t day, uint64_t *ret_day_of_month, uint64_t *ret_length)
{
    uint64_t in_era = (day + EPOCH_DAY) % ERA_DAYS;
    uint64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    uint64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * in_year + 2) / 153; /* 0 is March */
    uint64_t next = year + 1;
    bool leap = next % 4 == 0 && (next % 100 != 0 || next % 400 == 0);

    *ret_day_of_month = in_year - (153 * month + 2) / 5;
    *ret_length = month == 11 ? 28u + leap : (153 * (month + 1) + 2) / 5 - (153 * month + 2) / 5;
}

/* The first day of the period, and how many it has. */
static uint64_t
first_day(enum bh_period period, uint64_t day, uint64_t *ret_length)
{
    uint64_t into = 0;

    *ret_length = period == BH_PERIOD_WEEK ? 7 : 1;
    if (period == BH_PERIOD_WEEK)
        into = (day + 3) % 7; /* 1970-01-01 was a Thursday */
    if (period == BH_PERIOD_MONTH)
        month_of(day, &into, ret_length);
    return into < day ? day - into : 0;
}

uint64_t
bh_period_begin_ns(enum bh_period period, uint64_t at_ns)
{
    uint64_t length;

    BH_ASSERT((uint32_t)period < BH_PERIODS);
    return period == BH_PERIOD_NONE ? 0 : first_day(period, at_ns / DAY_NS, &length) * DAY_NS;
}

uint64_t
bh_period_end_ns(enum bh_period period, uint64_t at_ns)
{
    uint64_t day = at_ns / DAY_NS, length, into;

    BH_ASSERT((uint32_t)period < BH_PERIODS);
    if (period == BH_PERIOD_NONE)
        return UINT64_MAX;
    into = day - first_day(period, day, &length);
    /* the first week of 1970 is cut short: it began in 1969 */
    if (period == BH_PERIOD_WEEK && day < 4)
        into += 3;
    return (day - into + length) * DAY_NS;
}
