#ifndef BH_ENGINE_FORECAST_FORECAST_SERIES_H
#define BH_ENGINE_FORECAST_FORECAST_SERIES_H

#include "engine/forecast/headroom.h"
#include "engine/step/engine.h"

/* The series of a site, and what the engine should know because of them.
 *
 * Beside the engine, not in it: series are observations, kept by the owner.  The owner lets them observe the
 * engine a few times a slot, and sends the engine the OUTLOOK events that follow; those are journalled, so
 * replay needs no series.  Observed are
 *
 *   TENANT  each with a guarantee in GPU-equivalents: what it uses and waits for, with its
 *           subtree, in parts
 *   POOL    each GPU model: what is used of it and waits for it, in parts
 *   PARTITIONS  each MIG profile of a SKU: partitions in use and waited for
 *   NODE    what is in use on it, in parts
 *
 * A job that waits counts with what its SKU takes at least, for the first model in it that there are GPUs of;
 * suspended ones count, held ones do not. */

enum bh_forecast_of {
    BH_FORECAST_OF_TENANT,
    BH_FORECAST_OF_POOL,
    BH_FORECAST_OF_PARTITIONS,
    BH_FORECAST_OF_NODE,
    BH_FORECAST_OFS
};

enum {
    BH_FORECAST_HORIZONS = 3,
    BH_FORECAST_Q_BP = 9500,          /* how often a bound is to be kept */
    BH_FORECAST_HOT_PERMILLE = 900,   /* a node is hot that may be used so far in an hour */
    BH_FORECAST_SAMPLES = 6,          /* that the owner should take in a slot */
    BH_FORECAST_RESERVE_PERMILLE = 50 /* of a pool, on top of its bound: packing does not
                                     reach the last of it */
};
#define BH_FORECAST_SLOT_NS (UINT64_C(1800) * 1000000000)

/* Slots ahead: an hour, three and a day of slots of half an hour.  What is acted upon is
 * the first; pools shrink by the last too. */
extern const uint32_t bh_forecast_horizon_steps[BH_FORECAST_HORIZONS];

/* How many of them a series has: a node, of which there are many, the first only. */
uint32_t bh_forecast_row_horizons(enum bh_forecast_of of);

struct bh_forecast_row {
    uint32_t of;    /* enum bh_forecast_of */
    uint32_t id;    /* tenant, model, profile or node */
    uint32_t value; /* when observed last */
    uint32_t seen;
    struct bh_forecast series; /* with a promise for each of its horizons, in order */
};

/* `rows` are the caller's memory, room for `max`, ordered by (of, id). */
struct bh_forecast_series {
    struct bh_forecast_row *rows;
    uint32_t count, max;
    uint64_t slot_ns;
    uint64_t slot; /* in which was observed last */
};

/* How many rows an engine's site takes now. */
uint32_t bh_forecast_series_needed(const struct bh_engine *engine);

/* Take the values at `now_ns`; objects that no longer exist lose their row.  Times before the last are
 * ignored.  `max` must be at least bh_forecast_series_needed(). */
void bh_forecast_series_observe(struct bh_forecast_series *series, const struct bh_engine *engine,
                                uint64_t now_ns);

/* The row of that subject, or NULL. */
const struct bh_forecast_row *bh_forecast_series_find(const struct bh_forecast_series *series,
                                                      enum bh_forecast_of of, uint32_t id);

/* Whether a row read from outside is one: known subject, sound series of this slot length
 * with the promises above. */
bool bh_forecast_row_is_valid(const struct bh_forecast_row *forecast_row, uint64_t slot_ns);

/* The next OUTLOOK that differs from what the engine knows, as far as its settings use
 * it; false: no more.  Start with *cursor = 0, and step the engine with each. */
bool bh_forecast_series_next(const struct bh_forecast_series *series, const struct bh_engine *engine,
                             uint32_t *cursor, struct bh_event *ret_event);

/* A series' bound at one of the horizons, by its number. */
struct bh_forecast_bound bh_forecast_row_bound(const struct bh_forecast_row *forecast_row, uint32_t horizon);

/* How many partitions of that profile should stand ready: those that may be asked for beyond
 * what is now; 0 as long as the bound is not firm. */
uint32_t bh_forecast_row_ready(const struct bh_forecast_row *forecast_row);

/* A GPU model's pool as bh_headroom_propose takes it: GPUs that get new work, and so many
 * as are guaranteed at least.  `bounds` (BH_FORECAST_HORIZONS of the pool's sight) are
 * pointed to; NULL: the caller sets need and later. */
struct bh_headroom_pool bh_forecast_series_pool(const struct bh_engine *engine, uint32_t model,
                                                const struct bh_forecast_bound *bounds);

/* Parts of the node's GPUs that get new work; 0: none do. */
uint64_t bh_forecast_series_capacity(const struct bh_engine *engine, bh_node_id node);

#endif
