#ifndef BH_LAB_LOAD_SYNTH_H
#define BH_LAB_LOAD_SYNTH_H

#include "lab/load/load.h"

/* A load out of nothing, close in shape to Philly's, for people without its data.
 *
 * GPUs of a job: 1, 2, 4 and 8 in 764, 25, 109 and 102 of 1000.  Duration: a quantile of
 * twentieths, as Philly's jobs have them (median 3 hours, a twentieth over 5 days), evenly
 * between two.  Tenants: the k-th brings jobs in proportion to 1/k.  Submissions: evenly at
 * random over the time that gives the load asked for.  The same seed gives the same load. */
struct bh_synth {
    uint32_t nodes, jobs, tenants;
    uint64_t seed;
    bool mig; /* one MIG instance of 1, 2, 3 or 7 slices instead of 1, 2, 4 or 8 GPUs */
};

enum { BH_SYNTH_GPUS = 8 }; /* of each node */

/* Fill an empty load; submissions lie within a year until bh_load_scale moves them. */
void bh_synth_make(const struct bh_synth *synth, struct bh_load *load);

#endif
