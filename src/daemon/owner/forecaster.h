#ifndef BH_DAEMON_OWNER_FORECASTER_H
#define BH_DAEMON_OWNER_FORECASTER_H

#include "daemon/state/core.h"
#include "engine/forecast/forecast_series.h"

/* The owner's forecasts: the owner lets them observe the engine a few times in each slot, and sends the
 * engine the resulting events (docs/forecast.md).
 *
 * The series are kept in `forecast.bin` in the state folder, written whole when a slot closes and at the end;
 * after a crash the slots since then are filled with the value before them.  The file is no record: without
 * it, or when it is damaged, the series begin anew. */
struct bh_forecaster;

/* With the series of before.  `core` is open and stays. */
struct bh_forecaster *bh_forecaster_open(struct bh_core *core);

/* Writes the series and frees them; NULL is fine. */
void bh_forecaster_close(struct bh_forecaster *forecaster);

/* When it wants to look again, by the owner's clock. */
uint64_t bh_forecaster_next_ns(const struct bh_forecaster *forecaster);

/* Look, if it is time or the site changed in the open batch: OUTLOOK events go into it.
 * Fails as bh_core_step. */
BH_MUST_USE bh_rc bh_forecaster_update(struct bh_forecaster *forecaster, struct bh_err *err);

const struct bh_forecast_series *bh_forecaster_series(const struct bh_forecaster *forecaster);

#endif
