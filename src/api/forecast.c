#include "api/forecast.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/time.h"

const char bh_forecast_assumption[] =
    "if jobs run to their time limits, 24h where a batch job has none, and nothing else happens";

enum { SLICE_STEPS = 200, NEW_ROWS = 16 };

void
bh_forecast_take(const struct bh_engine *engine, struct bh_forecast *ret_forecast)
{
    *ret_forecast = (struct bh_forecast){ 0 };
    bh_state_take(engine, &ret_forecast->state);
}

void
bh_forecast_twin(const struct bh_forecast *forecast, struct bh_forecast *ret_twin)
{
    bh_forecast_take(forecast->state.engine, ret_twin);
}

void
bh_forecast_free(struct bh_forecast *forecast)
{
    bh_state_fini(&forecast->state);
    free(forecast->future);
    free(forecast->outlooks.rows);
    *forecast = (struct bh_forecast){ 0 };
}

void
bh_forecast_begin(struct bh_forecast *forecast, uint64_t now_ns)
{
    struct bh_outlooks *outlooks = &forecast->outlooks;
    struct bh_future_options options = { .now_ns = now_ns, .hear = bh_outlooks_hear,
                                         .self = outlooks };
    bh_rc rc;

    BH_ASSERT(!forecast->future);
    outlooks->max = bh_outlooks_needed(forecast->state.engine) + NEW_ROWS;
    outlooks->rows = calloc(outlooks->max, sizeof *outlooks->rows);
    forecast->future = malloc(sizeof *forecast->future);
    BH_ASSERT(outlooks->rows && forecast->future);
    rc = bh_outlooks_begin(outlooks, forecast->state.engine);
    BH_ASSERT(rc == BH_OK);
    bh_future_begin(forecast->future, forecast->state.engine, &options);
}

static void
grow(struct bh_forecast *forecast)
{
    bh_state_grow(&forecast->state);
    forecast->future->engine = forecast->state.engine;
}

bh_rc
bh_forecast_send(struct bh_forecast *forecast, const struct bh_event *event)
{
    bh_rc rc;

    while ((rc = bh_future_send(forecast->future, event)) == BH_FULL)
        grow(forecast);
    return rc;
}

void
bh_forecast_play(struct bh_forecast *forecast)
{
    bh_ns stop_ns = bh_time_monotonic() + BH_FORECAST_SECONDS_MAX * BH_NS_PER_S;
    enum bh_future_end end = BH_FUTURE_MORE;

    while (end <= BH_FUTURE_FULL && forecast->future->steps < BH_FORECAST_STEPS_MAX
           && bh_time_monotonic() < stop_ns) {
        end = bh_future_run(forecast->future, SLICE_STEPS);
        if (end == BH_FUTURE_FULL)
            grow(forecast);
    }
    bh_outlooks_close(&forecast->outlooks, forecast->future, end);
}
