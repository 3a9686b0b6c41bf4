#ifndef BH_LAB_LOAD_SIMULATED_FORECAST_H
#define BH_LAB_LOAD_SIMULATED_FORECAST_H

#include "engine/forecast/forecast_series.h"

/* Forecasts on simulated time: what the daemon's owner does with them (daemon/owner/forecaster.h),
 * without a file.  All zero: none. */
struct bh_simulated_forecast {
    struct bh_forecast_series series;
    uint64_t next_ns; /* when to observe again */
};

/* With slots of that length; 0: never.  Release with bh_simulated_forecast_fini. */
void bh_simulated_forecast_init(struct bh_simulated_forecast *forecast, uint64_t slot_ns);
void bh_simulated_forecast_fini(struct bh_simulated_forecast *forecast);

/* When it is to observe the engine next, or UINT64_MAX. */
uint64_t bh_simulated_forecast_due_ns(const struct bh_simulated_forecast *forecast);

/* Observe the engine.  The events that follow come from bh_forecast_series_next. */
void bh_simulated_forecast_update(struct bh_simulated_forecast *forecast, const struct bh_engine *engine,
                                  uint64_t now_ns);

#endif
