#ifndef BH_LAB_MIG_BOUND_H
#define BH_LAB_MIG_BOUND_H

#include <stdint.h>

#include "lab/mig/fleet.h"

/* What the MIG test's policies can be measured by: slice-weighted acceptance in the long
 * run, 0 .. 1, of two that cannot be deployed.  The stream is that of run.h; both
 * are worked out, not sampled. */

enum { BH_MIG_OPTIMUM_GPUS_MAX = 3, BH_MIG_MOVING_GPUS_MAX = 400 };

/* Of the best of all policies that refuse nothing that fits and move nothing: it knows the
 * mix and the load, though not the jobs to come.  By value iteration over all layouts of
 * `gpus` (1 .. BH_MIG_OPTIMUM_GPUS_MAX) GPUs, at most 0.0002 off.  Aborts when memory runs
 * out. */
double bh_mig_optimum(enum bh_gpu_model model, const struct bh_mig_mix *mix, double load, uint32_t gpus);

/* If running jobs could be moved at will and at once, and their sizes only had to add up:
 * a job is refused when the fleet (of up to BH_MIG_MOVING_GPUS_MAX) has fewer slices or
 * memory units left than it wants.  A yardstick, not quite a bound: who cannot place a
 * large job for want of moves has room for small ones. */
double bh_mig_moving(enum bh_gpu_model model, const struct bh_mig_mix *mix, double load, uint32_t gpus);

/* Layouts of one GPU that are the same to every job to come count once; for tests. */
uint32_t bh_mig_bound_layouts(enum bh_gpu_model model, const struct bh_mig_mix *mix);

#endif
