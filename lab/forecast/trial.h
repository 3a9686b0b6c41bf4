#ifndef BH_LAB_FORECAST_TRIAL_H
#define BH_LAB_FORECAST_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/forecast/forecast.h"
#include "lab/forecast/series.h"

/* How the engine's forecasts (engine/forecast/forecast.h) would have done on a series.
 *
 * The series is put in slot by slot, and a forecast is made in each; judged are those of
 * slots in the last 40 % of the series, by what was known when they were made.  Slots
 * without a value are neither judged nor spoken from.  Measured values are floating point:
 * this is a report, not a decision. */

enum { BH_TRIAL_BOUNDS_MAX = BH_FORECAST_PROMISES_MAX };

struct bh_trial_question {
    uint32_t steps, window;             /* slots; as bh_forecast_init and _bound want them */
    uint32_t q_bp[BH_TRIAL_BOUNDS_MAX]; /* basis points */
    uint32_t count;
};

/* One upper bound.  The share that was kept is kept / judged. */
struct bh_trial_bound {
    uint32_t judged, kept;
    double headroom;               /* mean of max(0, bound - what came), in units of the mean of what came */
    struct bh_forecast_bound next; /* what would be said at the end, in thousandths */
    struct bh_forecast_coverage coverage; /* and beside it: the engine's own count */
};

struct bh_trial {
    uint32_t judged; /* slots; 0: the series is too short, and nothing else is set */
    double mean;     /* of what came in them, in units */
    double error;    /* mean of |last value - what came|, in units */
    double scaled;   /* error / that of "as yesterday" on the first 60 %; < 0: none (a
                        flat series, less than a day, or slots that do not divide a day) */
    double smape;    /* mean of 200 |last - came| / (last + came) %, 0 where both are 0 */
    struct bh_trial_bound bounds[BH_TRIAL_BOUNDS_MAX];
};

/* What was said of a slot and what came, in thousandths; `bounds` as in the question. */
struct bh_trial_moment {
    uint64_t slot;
    uint32_t came;
    const struct bh_forecast_bound *bounds;
};
typedef void bh_trial_see(void *self, const struct bh_trial_moment *moment);

/* Try the question on the series.  `see` (may be NULL) is called for each judged slot. */
void bh_trial_run(const struct bh_series *series, const struct bh_trial_question *question,
                  struct bh_trial *ret_trial, bh_trial_see *see, void *self);

#endif
