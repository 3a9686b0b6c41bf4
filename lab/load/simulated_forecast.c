#include "lab/load/simulated_forecast.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/vec.h"

enum { ROWS_MAX = 1 << 28 };

void
bh_simulated_forecast_init(struct bh_simulated_forecast *forecast, uint64_t slot_ns)
{
    *forecast = (struct bh_simulated_forecast){ .series.slot_ns = slot_ns };
}

void
bh_simulated_forecast_fini(struct bh_simulated_forecast *forecast)
{
    free(forecast->series.rows);
    *forecast = (struct bh_simulated_forecast){ 0 };
}

uint64_t
bh_simulated_forecast_due_ns(const struct bh_simulated_forecast *forecast)
{
    return forecast->series.slot_ns ? forecast->next_ns : UINT64_MAX;
}

void
bh_simulated_forecast_update(struct bh_simulated_forecast *forecast, const struct bh_engine *engine,
                             uint64_t now_ns)
{
    struct bh_forecast_series *series = &forecast->series;
    uint32_t rows = series->count + bh_forecast_series_needed(engine);
    bool fits = rows == 0 || bh_vec_reserve(&series->rows, &series->max, rows, ROWS_MAX);

    BH_ASSERT(fits);
    bh_forecast_series_observe(series, engine, now_ns);
    forecast->next_ns = now_ns + series->slot_ns / BH_FORECAST_SAMPLES;
}
