#ifndef BH_DAEMON_SERIES_OBSERVATION_H
#define BH_DAEMON_SERIES_OBSERVATION_H

#include "base/arena.h"
#include "ports/series.h"

/* What is worth a sample at one moment: figures of the engine, and what nodes reported last. */

struct bh_observed_value {
    struct bh_series_object object; /* its name is in the observation's arena */
    enum bh_series_row row;
    uint64_t value;
};

struct bh_observation {
    struct bh_arena *arena;
    struct bh_observed_value *values;
    uint32_t count, capacity;
    uint64_t now_ns; /* engine time (docs/time.md) */
};

/* Empty, onto the caller's arena; BH_OBSERVED_MAX values fit. */
enum { BH_OBSERVED_MAX = 1 << 20 };
void bh_observation_init(struct bh_observation *observation, struct bh_arena *arena);
void bh_observation_fini(struct bh_observation *observation);

/* One figure; an object without a name, and what no longer fits, is left out. */
void bh_observation_put(struct bh_observation *observation, const struct bh_series_object *object,
                        enum bh_series_row row, uint64_t value);

#endif
