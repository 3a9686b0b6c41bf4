#ifndef BH_ENGINE_FORECAST_FORECAST_H
#define BH_ENGINE_FORECAST_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* What one series will need at most: a tenant's demand, a pool's, a node's use.
 *
 * The level is the last value; the upper bound h steps ahead at a confidence q is the level
 * plus the empirical q-quantile of the changes over h steps in the window.  Last value was
 * the best of seven methods at 1 h and 3 h on 14 tenants of Helios Earth, and this bound
 * kept its word on all of them (docs/performance/forecasts.md).
 *
 * Time is cut into slots of `slot_ns`; a slot's value is the last that was put in it, and
 * slots that saw none repeat the value before them.  Values are integers of the caller's
 * unit (parts, for GPUs).  Pure: a plain value of integers without pointers that may be
 * copied, hashed or stand in a snapshot; equal calls give equal bytes. */

enum {
    BH_FORECAST_WINDOW_MAX = 336, /* changes looked at: 7 days of slots of 30 min */
    BH_FORECAST_STEPS_MAX = 48,   /* farthest ahead: 24 h of slots of 30 min */
    BH_FORECAST_SLOTS = BH_FORECAST_WINDOW_MAX + BH_FORECAST_STEPS_MAX,
    BH_FORECAST_PROMISES_MAX = 4,
    BH_FORECAST_WORDS = (BH_FORECAST_WINDOW_MAX + 63) / 64
};
#define BH_FORECAST_VALUE_MAX (UINT32_MAX - 1) /* values above count as this */

/* A forecast that is made in every slot and later held against what came. */
struct bh_forecast_promise {
    uint32_t steps, q_bp;
    uint32_t bounds[BH_FORECAST_STEPS_MAX]; /* by slot modulo; UINT32_MAX: none was made */
    uint64_t judged[BH_FORECAST_WORDS];     /* bits, by slot modulo window */
    uint64_t kept[BH_FORECAST_WORDS];
};

/* 2,752 bytes a series; contents are for forecast.c. */
struct bh_forecast {
    uint64_t slot_ns, slot; /* the newest slot: time divided by slot_ns */
    uint32_t window;        /* slots */
    uint32_t count;         /* slots in the ring; 0: nothing was put yet */
    uint32_t promise_count, unused;
    uint32_t values[BH_FORECAST_SLOTS]; /* by slot modulo */
    struct bh_forecast_promise promises[BH_FORECAST_PROMISES_MAX];
};

/* An upper bound with what it was made of. */
struct bh_forecast_bound {
    uint32_t value;         /* level + change within 0 .. BH_FORECAST_VALUE_MAX */
    uint32_t level;         /* the last value; 0 when nothing was put yet */
    int64_t change;         /* the `rank`th smallest of the `changes` */
    uint32_t changes, rank; /* rank = ceil((changes + 1) * q), at least 1 */
    uint32_t steps, q_bp;   /* as asked */
    bool firm;              /* rank <= changes; else the largest change stands in */
};

/* How promises were kept, over those that fell due within the window. */
struct bh_forecast_coverage {
    uint32_t kept, judged;
};

/* An empty series.  `slot_ns` > 0; `window` 1 .. BH_FORECAST_WINDOW_MAX slots. */
void bh_forecast_init(struct bh_forecast *forecast, bh_ns slot_ns, uint32_t window);

/* From now on, make a forecast `steps` (1 .. BH_FORECAST_STEPS_MAX) ahead at `q_bp`
 * (1 .. 10000 basis points) as each slot closes, and count whether what came was at most
 * the bound.  Only firm ones count, and only slots in which a value was put.  At most
 * BH_FORECAST_PROMISES_MAX; the number for bh_forecast_coverage comes back. */
uint32_t bh_forecast_promise(struct bh_forecast *forecast, uint32_t steps, uint32_t q_bp);

/* The series has this value at `now_ns`, which must not lie in a slot before the newest.
 * A value in the newest slot replaces it.  One in a later slot closes the newest, fills the
 * slots between with its value, and opens another.  Cost: one bound per promise for each
 * slot that closes, however long the gap. */
void bh_forecast_put(struct bh_forecast *forecast, bh_ns now_ns, uint32_t value);

/* The bound `steps` ahead of the newest slot; ranges as in bh_forecast_promise.  With less
 * history than q needs `firm` is false and the bound is the level plus the largest change
 * there is (0 without any): fit to be shown, not to be relied on.
 *
 * The rank is split conformal prediction's, ceil((n + 1) q) (Lei et al., JASA 2018), exact
 * for exchangeable changes.  Cost: at most 34 passes over the window, as many
 * as the span of the changes has bits. */
struct bh_forecast_bound bh_forecast_bound(const struct bh_forecast *forecast, uint32_t steps, uint32_t q_bp);

/* How the promise of that number was kept within the window up to now. */
struct bh_forecast_coverage bh_forecast_coverage(const struct bh_forecast *forecast, uint32_t promise);

#endif
