#ifndef BH_API_STATE_SIMULATION_H
#define BH_API_STATE_SIMULATION_H

#include "api/state/state.h"
#include "engine/forecast/whatif.h"

/* A future with its memory: a copy of the engine, the future played on it and what becomes
 * of each job.  The live engine is copied on the owner's thread and nothing more is done
 * there; everything else may run on any thread, by itself. */
struct bh_simulation {
    struct bh_state state;
    struct bh_future *future;
    struct bh_job_forecasts forecasts;
};

/* How long one future is played at most: what starts soon is known by then. */
enum { BH_SIMULATION_STEPS_MAX = 400000, BH_SIMULATION_SECONDS_MAX = 3 };

/* The assumption of all estimates, as answers state it. */
extern const char bh_simulation_assumption[];

/* Copy the engine; to be freed. */
void bh_simulation_copy(const struct bh_engine *engine, struct bh_simulation *ret_simulation);
void bh_simulation_free(struct bh_simulation *simulation);
BH_AUTO_DEFINE(struct bh_simulation *, bh_simulation_free)

/* A second copy of one that has not begun. */
void bh_simulation_clone(const struct bh_simulation *simulation, struct bh_simulation *ret_clone);

/* Begin at `now_ns`. */
void bh_simulation_begin(struct bh_simulation *simulation, uint64_t now_ns);

/* As bh_future_send, growing as needed: never BH_FULL. */
BH_MUST_USE bh_rc bh_simulation_send(struct bh_simulation *simulation, const struct bh_event *event);

/* Play until all that wait have started or the limits above are reached; the outlooks say
 * which (`open`). */
void bh_simulation_run(struct bh_simulation *simulation);

#endif
