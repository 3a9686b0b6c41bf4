#ifndef BH_DAEMON_SERIES_OBSERVATION_H
#define BH_DAEMON_SERIES_OBSERVATION_H

#include "api/request/owner.h"
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

/* What has to be remembered from one moment to the next: the reports of nodes, so that one that is repeated is
 * not a sample for ever, and the CPU time of leases. */
struct bh_observer;
BH_MUST_USE struct bh_observer *bh_observer_new(void);
void bh_observer_free(struct bh_observer *observer);

/* Look: asks the owner a few short questions.  `monotonic_ns` is that clock's now.  Results of
 * bh_owner_ops.ask. */
BH_MUST_USE bh_rc bh_observer_observe(struct bh_observer *observer, const struct bh_owner *owner,
                                      uint64_t monotonic_ns, struct bh_observation *ret_observation,
                                      struct bh_err *err);

#endif
