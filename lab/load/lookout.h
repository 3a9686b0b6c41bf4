#ifndef BH_LAB_LOAD_LOOKOUT_H
#define BH_LAB_LOAD_LOOKOUT_H

#include "engine/forecast/forecast_series.h"

/* Forecasts on simulated time: what the daemon's owner does with them (daemon/owner/forecaster.h),
 * without a file.  All zero: none. */
struct bh_lookout {
    struct bh_forecast_series foresight;
    uint64_t next_ns; /* when to look again */
};

/* With slots of that length; 0: never look.  Release with bh_lookout_fini. */
void bh_lookout_init(struct bh_lookout *lookout, uint64_t slot_ns);
void bh_lookout_fini(struct bh_lookout *lookout);

/* When it wants to look, or UINT64_MAX. */
uint64_t bh_lookout_due_ns(const struct bh_lookout *lookout);

/* Look.  The events that follow come from bh_forecast_series_next. */
void bh_lookout_look(struct bh_lookout *lookout, const struct bh_engine *engine, uint64_t now_ns);

#endif
