#ifndef BH_REPLAY_CHART_H
#define BH_REPLAY_CHART_H

#include <stdint.h>
#include <stdio.h>

/* A line chart as one SVG file that stands alone: axes with round ticks, a legend, light
 * and dark by the reader's preference, no script. */

struct bh_chart_line {
    const char *name;  /* in the legend; escaped */
    const double *x, *y;
    uint32_t count;
};

struct bh_chart {
    const char *title, *x_label, *y_label;
    const struct bh_chart_line *lines;
    uint32_t line_count;
};

/* Write it to `out`; the caller checks ferror. */
void bh_chart_write(FILE *out, const struct bh_chart *chart);

#endif
