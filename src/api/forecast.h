#ifndef BH_API_FORECAST_H
#define BH_API_FORECAST_H

#include "api/state.h"
#include "engine/whatif.h"

/* A future with its memory: a copy of the engine, the future played on it and what becomes
 * of each job.  The live engine is copied on the owner's thread and nothing more is done
 * there; everything else may run on any thread, by itself. */
struct bh_forecast {
    struct bh_state state;
    struct bh_future *future;
    struct bh_outlooks outlooks;
};

/* How long one future is played at most: what starts soon is known by then. */
enum { BH_FORECAST_STEPS_MAX = 400000, BH_FORECAST_SECONDS_MAX = 3 };

/* What all estimates rest on, as people are told. */
extern const char bh_forecast_assumption[];

/* Copy the engine; to be freed. */
void bh_forecast_take(const struct bh_engine *engine, struct bh_forecast *ret_forecast);
void bh_forecast_free(struct bh_forecast *forecast);
BH_AUTO_DEFINE(struct bh_forecast *, bh_forecast_free)

/* A second copy of one that has not begun. */
void bh_forecast_twin(const struct bh_forecast *forecast, struct bh_forecast *ret_twin);

/* Begin at `now_ns`. */
void bh_forecast_begin(struct bh_forecast *forecast, uint64_t now_ns);

/* As bh_future_send, growing as needed: never BH_FULL. */
BH_MUST_USE bh_rc bh_forecast_send(struct bh_forecast *forecast, const struct bh_event *event);

/* Play until all that wait have started or the limits above are reached; the outlooks say
 * which (`open`). */
void bh_forecast_play(struct bh_forecast *forecast);

#endif
