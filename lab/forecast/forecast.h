#ifndef BH_LAB_FORECAST_FORECAST_H
#define BH_LAB_FORECAST_FORECAST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "lab/forecast/series.h"
#include "lab/forecast/trial.h"

/* `bulkhead-lab forecast`: the engine's forecasts on recorded demand, as a table, as
 * JSON, as a chart. */

enum { BH_FORECAST_HORIZONS_MAX = 8 };

struct bh_forecast_options {
    const char *source; /* a file, a folder of *.csv, or one that has helios/earth_vc */
    const char *svg;    /* NULL: no chart */
    bool json;
    bh_ns every_ns, window_ns, horizons_ns[BH_FORECAST_HORIZONS_MAX];
    uint32_t horizon_count;
    uint32_t q_bp[BH_TRIAL_BOUNDS_MAX], q_count;
    uint32_t least; /* units of mean; series below are left out */
    bool least_set; /* else 4 for series of GPUs and 0 for others */
    enum bh_series_take take;
};

/* The options in `words`, which must outlive the result; defaults for the others.
 *   BH_INVALID  unknown, without its value, no --data, no number; spans that are no
 *               multiple of --every
 *   BH_RANGE    a horizon or window longer than the engine's, more than there is room for
 */
BH_MUST_USE bh_rc bh_forecast_options_parse(int count, char **words, struct bh_forecast_options *ret_options,
                                            struct bh_err *err);

/* One line each: what the options are called and what they mean. */
void bh_forecast_print_options(FILE *out);

/* Series and their trials, in order of names. */
struct bh_forecast_report {
    struct bh_series *series;
    struct bh_trial (*trials)[BH_FORECAST_HORIZONS_MAX];
    uint32_t count, room;
    uint32_t left_out; /* below `least`, or too short to be judged */
};

/* Read the series and try them.  Progress goes to `progress` (NULL: none), in one
 * line that is written over.  Owned by the caller after BH_OK.
 *   BH_NOT_FOUND  no such file or folder, or no series worth a trial in it
 *   BH_RANGE      more than 10,000 files, a path too long
 *   and what reading a file may say */
BH_MUST_USE bh_rc bh_forecast_try(const struct bh_forecast_options *options, FILE *progress,
                                  struct bh_forecast_report *ret_report, struct bh_err *err);
void bh_forecast_report_fini(struct bh_forecast_report *report);

/* Try, write to `out`, and the chart where --svg says; progress to a terminal on standard
 * error.  Failures are those of bh_forecast_try and bh_forecast_draw.  The caller checks
 * ferror(out). */
BH_MUST_USE bh_rc bh_forecast_run(const struct bh_forecast_options *options, FILE *out, struct bh_err *err);

#endif
