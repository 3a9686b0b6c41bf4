#ifndef BH_MODEL_PERIOD_H
#define BH_MODEL_PERIOD_H

#include <stdint.h>

/* Calendar periods in UTC, for budgets: days begin at midnight, weeks on Monday (ISO 8601),
 * months on the first. */
enum bh_period { BH_PERIOD_NONE, BH_PERIOD_DAY, BH_PERIOD_WEEK, BH_PERIOD_MONTH, BH_PERIODS };

extern const char *const bh_period_names[BH_PERIODS];

/* When the period that holds `at_ns` began, and when the next one begins: nanoseconds since
 * the epoch.  Of NONE: 0 and UINT64_MAX. */
uint64_t bh_period_begin_ns(enum bh_period period, uint64_t at_ns);
uint64_t bh_period_end_ns(enum bh_period period, uint64_t at_ns);

#endif
