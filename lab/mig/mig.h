#ifndef BH_LAB_MIG_MIG_H
#define BH_LAB_MIG_MIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "lab/common/flags.h"
#include "lab/mig/run.h"

/* The MIG test: slice-weighted acceptance of placement policies on 80 GB GPUs, by mix of
 * profiles and offered load (docs/lab.md). */

enum { BH_MIG_MIXES = 4, BH_MIG_LOADS_MAX = 8, BH_MIG_SEEDS_MAX = 1000 };
extern const struct bh_mig_mix bh_mig_mixes[BH_MIG_MIXES];

struct bh_mig_options {
    uint32_t mixes, policies; /* bit n: mix or policy n */
    double loads[BH_MIG_LOADS_MAX];
    uint32_t load_count;
    struct bh_flag_seeds seeds;
    uint32_t gpus, arrivals;
    bool json, bounds;
    const char *svg; /* a path, or NULL */
};

/* Read the words after "mig".  `svg` points into them.  BH_INVALID, BH_RANGE: an unknown option,
 * a bad value. */
BH_MUST_USE bh_rc bh_mig_options_parse(int count, char **words, struct bh_mig_options *ret_options,
                                       struct bh_err *err);

/* Run it.  Writes a table, or with json one object a run and line, and the chart.
 *   BH_IO  `out` or the chart cannot be written */
BH_MUST_USE bh_rc bh_mig_test(const struct bh_mig_options *options, FILE *out, struct bh_err *err);

#endif
