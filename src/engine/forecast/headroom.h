#ifndef BH_ENGINE_FORECAST_HEADROOM_H
#define BH_ENGINE_FORECAST_HEADROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/forecast/forecast.h"

/* What a forecast is good for: lending an idle guarantee, the size of a pool, nodes that
 * are about to be full.  Functions of their arguments; amounts are parts, BH_GPU_PARTS a
 * GPU; each answer carries the numbers it came from, so that it can be explained. */

/* What of a guarantee may be lent until the bound's horizon: guarantee less bound, 0 when
 * the bound is higher or not firm. */
uint64_t bh_headroom_lend(uint64_t guarantee, const struct bh_forecast_bound *bound);

enum bh_headroom_move { BH_HEADROOM_KEEP, BH_HEADROOM_GROW, BH_HEADROOM_SHRINK };

/* A pool of like GPUs.  `need` and `later` are its demand's bounds at a near and a far
 * horizon: growing looks at the near one, shrinking at both, so that a dip of an hour
 * gives nothing away that the day needs. */
struct bh_headroom_pool {
    const struct bh_forecast_bound *need, *later;
    uint32_t capacity;         /* GPUs there are; below 2^30, as are least and most */
    uint32_t least, most;      /* GPUs there may be; least <= most */
    uint32_t grain;            /* GPUs that come and go together (a node's); > 0 */
    uint32_t reserve_permille; /* kept free on top of the bound; at most 10000 */
};

/* What to do with a pool, and why. */
struct bh_headroom_scale {
    enum bh_headroom_move move;
    uint32_t gpus;                 /* to add, or that could go; a multiple of grain */
    uint32_t wanted, wanted_later; /* GPUs for each bound with its reserve, rounded up */
};

/* GROW by the fewest grains that cover `need` with its reserve, and `least`, but to no more
 * than `most`.  SHRINK by the grains that neither bound wants and `least` does not hold;
 * only when both bounds are firm.  Otherwise KEEP, 0 GPUs. */
struct bh_headroom_scale bh_headroom_propose(const struct bh_headroom_pool *pool);

/* A node as it is expected to be. */
struct bh_headroom_heat {
    bool hot;                /* projected >= threshold */
    uint32_t level_permille; /* use now, of the capacity; rounded down */
    uint32_t projected_permille;
};

/* Will the node's use reach `mark_permille` of `capacity` (parts, > 0) at the bound's
 * horizon and confidence?  A bound that is not firm counts all the same: a false alarm
 * costs less than a hot node. */
struct bh_headroom_heat bh_headroom_test_node(const struct bh_forecast_bound *use, uint64_t capacity,
                                              uint32_t mark_permille);

#endif
