#ifndef BH_WEB_SVG_H
#define BH_WEB_SVG_H

#include "web/html.h"

/* Pictures within a page, drawn as SVG: shapes carry classes, the sheet their colors. */

/* A partition on its GPU, in true placement: `start` and `units` in the GPU's memory slices, of
 * which it has `units_of_gpu`; `slices` compute slices of `slices_of_gpu`. */
struct bh_svg_partition {
    uint32_t start, units, slices;
    const char *label; /* within it, as far as there is room: what holds it */
    const char *title; /* whole, for pointers and screen readers */
    const char *state; /* "leased", "idle", ...: a class */
    uint64_t job;      /* where it leads to; 0: nowhere */
    uint32_t hue;      /* of its tenant: 0 to BH_SVG_HUES - 1 */
};

enum { BH_SVG_HUES = 8 };

/* A tenant has one color on all pages: by its name. */
uint32_t bh_svg_hue(const char *tenant);

struct bh_svg_gpu {
    const char *title; /* says the same in words */
    uint32_t units, slices;
    const struct bh_svg_partition *partitions;
    uint32_t partition_count;
    bool fenced, cordoned; /* nothing new is placed on it: by a fault, or as an operator wants it */
};
void bh_svg_put_gpu(struct bh_html *html, const struct bh_svg_gpu *gpu);

/* A bar of a whole, with marks: use within a guarantee and a limit.  Amounts in parts. */
struct bh_svg_bar {
    const char *title;
    uint64_t used, guarantee, limit; /* BH_SVG_NO_LIMIT: none */
    uint64_t whole;                  /* what the bar's length is */
};

/* A whole in consecutive segments, each of a class of its own. */
struct bh_svg_segment {
    const char *class;
    uint64_t amount;
};
struct bh_svg_stack {
    const char *title;
    const struct bh_svg_segment *segments;
    uint32_t count;
    uint64_t whole;
};
void bh_svg_put_stack(struct bh_html *html, const struct bh_svg_stack *stack);

/* A course over time: the mean as a line, least to most as a band around it, what is usual behind both.  A
 * step without a point is a gap. */
struct bh_svg_point {
    uint32_t step;
    uint64_t min, mean, max;
};
struct bh_svg_series {
    const char *title;
    const struct bh_svg_point *points; /* by step */
    uint32_t count, steps;
    uint64_t top; /* what the picture is high; not 0 */
    bool has_usual;
    uint64_t usual_min, usual_max;
};
void bh_svg_put_series(struct bh_html *html, const struct bh_svg_series *series);

#define BH_SVG_NO_LIMIT UINT64_MAX
void bh_svg_put_bar(struct bh_html *html, const struct bh_svg_bar *bar);

#endif
