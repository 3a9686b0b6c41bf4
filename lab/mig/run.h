#ifndef BH_LAB_MIG_RUN_H
#define BH_LAB_MIG_RUN_H

#include <stdint.h>

#include "lab/mig/fleet.h"

/* One run of the MIG test: jobs come to a fleet in a Poisson stream, are placed or refused
 * at once, live exponentially long, and leave.
 *
 * The sequence depends on mix, load, GPUs, arrivals and seed alone, so policies meet the
 * same jobs.  From splitmix64, begun at the seed, each job takes three numbers u in (0, 1),
 * (x >> 11) + 1/2 over 2^53: its gap -ln(u) / rate, its profile (the first at which the
 * weights summed so far exceed u times their sum), its life -ln(u), of mean 1.  The rate is
 * load x GPUs x slices of a GPU / mean slices of a job.  Jobs that end at the time of an
 * arrival end before it.  The first quarter of the arrivals is not counted. */

struct bh_mig_run {
    enum bh_gpu_model model;
    const struct bh_mig_mix *mix;
    enum bh_mig_policy policy;
    double load;
    uint32_t gpus, arrivals;
    uint64_t seed;
};

struct bh_mig_outcome {
    uint64_t asked[BH_MIG_FLEET_PROFILES], refused[BH_MIG_FLEET_PROFILES];
    double acceptance;  /* of the slices asked for, 0 .. 1 */
    double utilisation; /* of the fleet's slices, mean over time, 0 .. 1 */
};

/* Aborts when memory runs out. */
struct bh_mig_outcome bh_mig_run_play(const struct bh_mig_run *run);

#endif
