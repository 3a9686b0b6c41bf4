#ifndef BH_LAB_FORECAST_PRINT_H
#define BH_LAB_FORECAST_PRINT_H

#include <stdio.h>

#include "base/err.h"

struct bh_forecast_options;
struct bh_forecast_report;

/* A report for people, for programs, and as a picture. */

/* A table a horizon: a line a series, then the mean and the worst.  The caller checks
 * ferror. */
void bh_forecast_print_table(const struct bh_forecast_options *options,
                             const struct bh_forecast_report *report, FILE *out);

/* One object on one line; numbers are integers whose unit ends the name (_permille, _bp,
 * _milli).  docs/lab.md lists the fields. */
void bh_forecast_print_json(const struct bh_forecast_options *options,
                            const struct bh_forecast_report *report, FILE *out);

/* The chart of the sum of all series and of their bounds at the first horizon, to the file
 * that the options name.  BH_RANGE: the series lie more than 1,048,576 slots apart; others
 * are those of bh_file_replace. */
BH_MUST_USE bh_rc bh_forecast_draw(const struct bh_forecast_options *options,
                                   const struct bh_forecast_report *report, struct bh_err *err);

#endif
