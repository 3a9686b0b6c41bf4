#ifndef BH_LAB_OPENB_REPORT_H
#define BH_LAB_OPENB_REPORT_H

#include <stdio.h>

#include "lab/openb/options.h"
#include "lab/openb/run.h"

/* What the runs of one call came to: printed as they end, summed up when all are done. */

struct bh_openb_row {
    struct bh_openb_name name;
    struct bh_openb_result result;
};

struct bh_openb_report {
    const struct bh_openb_options *options;
    FILE *out;
    uint32_t row_count;
    struct bh_openb_row *rows; /* the caller's */
    double worst;              /* difference from the artifact that was seen, with `check` */
};

/* The heading, where there is one. */
void bh_openb_report_begin(const struct bh_openb_report *report);

/* Add a run and print it.  With `check` compare it with the artifact, which fails as
 * bh_openb_expected_read. */
BH_MUST_USE bh_rc bh_openb_report_add(struct bh_openb_report *report, const struct bh_openb_row *row,
                                      struct bh_err *err);

/* Was a run further from the artifact than its hundredths explain? */
bool bh_openb_report_is_off(const struct bh_openb_report *report);

/* Means; and the chart, when one is asked for.  BH_IO: it cannot be written. */
BH_MUST_USE bh_rc bh_openb_report_end(const struct bh_openb_report *report, struct bh_err *err);

#endif
