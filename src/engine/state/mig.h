#ifndef BH_ENGINE_STATE_MIG_H
#define BH_ENGINE_STATE_MIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/geometry.h"

/* Which start on which GPU costs future jobs least, for a pool of GPUs of one model.
 *
 * Profiles that take the same slices, units and starts are one shape.  For each shape p
 * with s_p slices and the share w_p of the expected jobs, an occupancy has
 *
 *   fits_p   whether a job of p fits
 *   room_p   how many would fit (bh_occupancy_capacity)
 *   soon_p   room_p as expected after 2/9 of a mean life (exponential, no arrivals)
 *
 * and a placement costs what it takes of them, at the pool's prices:
 *
 *   cost = sum over p of s_p (now_p (-D fits_p) + later_p (-D soon_p)
 *                             + (2/5 w_p + 1/10 far_p) (-D room_p))
 *
 * The term with w_p is fragmentation as FGD measures it.  The prices are the chance that
 * the whole pool's room runs out: with m jobs of p expected in a span and room R in the
 * pool (the sum of fits_p, soon_p or room_p over its GPUs),
 *
 *   price = 1 / (1 + exp(1.702 (R + 1/2 - m) / sqrt(m + 1/10)))
 *
 * near the chance that a Poisson number of mean m exceeds R.  The spans are 1/9 (now), 2/9
 * (later) and 4/9 (far) of a mean life; m follows from w_p at an offered load of the whole
 * pool.  So a kind of hole that the pool has plenty of is free to be filled, a scarce one
 * is dear.
 *
 * Pure: integers, no clock, no pointers inside, the caller's memory.  Nothing is prepared
 * but for the model; demand and pool enter when prices are asked for. */

enum {
    BH_MIG_SHAPES_MAX = 8,
    BH_MIG_FIGURES_MAX = 640, /* occupancies distinguished; the table's models have at most
                                 585.  Those past it are judged as below */
    BH_MIG_ONE = 4096,        /* of soon_p and of the pool's sums */
    BH_MIG_WEIGHT_MAX = 1 << 24,
    BH_MIG_GPUS_MAX = 1 << 16
};

/* The model's shapes and what each occupancy has room for, now and soon.
 *
 * An occupancy is known by its units and its counts, so layouts that differ only in which
 * partition stands where share the mean of their soon_p.  One that no set of partitions explains
 * (blocked by claims or stuck partitions), or that came after BH_MIG_FIGURES_MAX others, is
 * taken to stay as it is: soon_p is room_p. */
struct bh_mig;

/* Bytes of a bh_mig: some 40 KiB, the same for every model. */
size_t bh_mig_size(void);

/* Work the model's occupancies out in `memory` (bh_mig_size bytes, 8-byte aligned; well
 * below 1 ms).  `model` is one that can be carved. */
struct bh_mig *bh_mig_init(void *memory, enum bh_gpu_model model);

/* The shape of a profile of the model; shapes are numbered from 0 in table order. */
uint32_t bh_mig_shape(const struct bh_mig *mig, const struct bh_profile *profile);
uint32_t bh_mig_shapes(const struct bh_mig *mig);

/* Expected jobs by shape: relative weights of at most BH_MIG_WEIGHT_MAX, such as one and
 * how many were asked for in the past days.  A weight of 0 says that room for the shape is
 * worth nothing; all zero: equal weights. */
struct bh_mig_demand {
    uint32_t weights[BH_MIG_SHAPES_MAX];
};

/* What the GPUs of a pool have room for together, kept by the caller: start with zeros,
 * add each GPU, and remove and add it again around each change.  Up to BH_MIG_GPUS_MAX. */
struct bh_mig_pool {
    uint32_t gpus;
    uint64_t fits[BH_MIG_SHAPES_MAX], soon[BH_MIG_SHAPES_MAX], capacity[BH_MIG_SHAPES_MAX];
    /* all three in 1/BH_MIG_ONE */
};

void bh_mig_pool_add(const struct bh_mig *mig, struct bh_mig_pool *pool,
                     const struct bh_occupancy *occupancy);
void bh_mig_pool_remove(const struct bh_mig *mig, struct bh_mig_pool *pool,
                        const struct bh_occupancy *occupancy);

/* What room is worth, in 1/65536 slice: s_p times now_p, later_p, and the factor of room.
 */
struct bh_mig_prices {
    int64_t now[BH_MIG_SHAPES_MAX], later[BH_MIG_SHAPES_MAX], capacity[BH_MIG_SHAPES_MAX];
};

void bh_mig_price(const struct bh_mig *mig, const struct bh_mig_demand *demand,
                  const struct bh_mig_pool *pool, struct bh_mig_prices *ret_prices);

/* What the room on one GPU is worth at these prices, in 1/(65536 BH_MIG_ONE) slice: a
 * placement costs what it takes of that. */
int64_t bh_mig_worth(const struct bh_mig *mig, const struct bh_mig_prices *prices,
                     const struct bh_occupancy *occupancy);

/* The starts on one GPU that cost least, all at that cost; less is better, and costs of
 * GPUs of one pool compare at the same prices. */
struct bh_mig_choice {
    uint32_t starts; /* bit s: memory unit s; 0: the profile does not fit */
    int64_t cost;    /* in 1/(65536 BH_MIG_ONE) slice; 0 when it does not fit */
};

struct bh_mig_choice bh_mig_choose(const struct bh_mig *mig, const struct bh_mig_prices *prices,
                                   const struct bh_occupancy *occupancy, const struct bh_profile *profile);

#endif
