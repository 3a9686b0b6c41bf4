#ifndef BH_LAB_MIG_FLEET_H
#define BH_LAB_MIG_FLEET_H

#include <stdbool.h>
#include <stdint.h>

#include "model/geometry.h"

/* A fleet of GPUs of one model and the policies that place jobs of six MIG profiles on it.
 * Every policy places each job that fits somewhere. */

enum { BH_MIG_FLEET_PROFILES = 6, BH_MIG_FLEET_GPUS_MAX = 4096 };

/* How often each profile is asked for, relative to the sum; smallest profile first, as
 * bh_mig_fleet_profile numbers them. */
struct bh_mig_mix {
    const char *name;
    uint32_t weights[BH_MIG_FLEET_PROFILES];
};

enum bh_mig_policy {
    BH_MIG_ROUND_ROBIN, /* the next GPU with room after the last one used */
    BH_MIG_WORST_FIT,   /* most free slices */
    BH_MIG_FIRST_FIT,   /* lowest number */
    BH_MIG_BEST_FIT,    /* fewest free memory units */
    BH_MIG_BEST_INDEX,  /* best-fit, at the start that keeps most placements */
    BH_MIG_MCC,         /* fewest placements lost */
    BH_MIG_FRAG,        /* FGD's fragmentation grows least; knows the true mix */
    BH_MIG_SLICE_FIT,   /* as best-index by free slices: not of the seven, but stronger */
    BH_MIG_BULKHEAD,    /* Bulkhead's (engine/state/mig.h); knows only what was asked for so far */
    BH_MIG_POLICIES
};
extern const char *const bh_mig_policy_names[BH_MIG_POLICIES];

struct bh_mig_placement {
    uint32_t gpu, start;
};

struct bh_mig_fleet;

/* `gpus` (1 .. BH_MIG_FLEET_GPUS_MAX) empty GPUs of a model with plain profiles of six
 * shapes.  Aborts when memory runs out. */
struct bh_mig_fleet *bh_mig_fleet_new(enum bh_gpu_model model, uint32_t gpus, enum bh_mig_policy policy,
                                      const struct bh_mig_mix *mix);
void bh_mig_fleet_free(struct bh_mig_fleet *fleet); /* NULL is fine */

/* The model's plain profiles by memory units, then slices: below BH_MIG_FLEET_PROFILES. */
const struct bh_profile *bh_mig_fleet_profile(const struct bh_mig_fleet *fleet, uint32_t kind);

/* Place a job where the policy wants it; among equals the lowest GPU, then the lowest
 * start.  False: it fits nowhere. */
bool bh_mig_fleet_place(struct bh_mig_fleet *fleet, uint32_t kind, struct bh_mig_placement *ret_placement);

/* A job that was placed there has ended. */
void bh_mig_fleet_end(struct bh_mig_fleet *fleet, uint32_t kind, const struct bh_mig_placement *placement);

/* What stands on a GPU. */
const struct bh_occupancy *bh_mig_fleet_gpu(const struct bh_mig_fleet *fleet, uint32_t gpu);

#endif
