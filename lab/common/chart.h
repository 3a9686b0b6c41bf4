#ifndef BH_LAB_COMMON_CHART_H
#define BH_LAB_COMMON_CHART_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* A line chart as one SVG file that stands alone: axes with round ticks, a legend, light
 * and dark by the reader's preference, no script. */

struct bh_chart_line {
    const char *name;    /* in the legend; escaped; 24 characters, the rest on hover */
    const double *x, *y; /* the caller's, unchanged; in the order to be drawn */
    uint32_t count;
};

struct bh_chart {
    const char *title, *x_label, *y_label;
    const struct bh_chart_line *lines;
    uint32_t line_count;
};

/* Write it to `out`; the caller checks ferror.
 *
 * Equal charts give equal bytes.  A line of more than 2,000 points is thinned evenly, its
 * ends kept.  What is NaN, infinite or beyond 1e300 leaves a gap.  The y axis begins at 0
 * unless the lowest value is above half of the highest or below 0.  Up to 32 lines differ
 * in colour and dashes; no line at all gives empty axes from 0 to 1.  Bytes that are no
 * UTF-8 or that XML forbids become question marks; a NULL text is an empty one. */
void bh_chart_write(FILE *out, const struct bh_chart *chart);

/* Write it to a file.  Fails as bh_err_errno. */
BH_MUST_USE bh_rc bh_chart_save(const char *path, const struct bh_chart *chart, struct bh_err *err);

#endif
