#ifndef BH_LAB_FORECAST_MEAN_H
#define BH_LAB_FORECAST_MEAN_H

#include "lab/forecast/forecast.h"

/* The mean over all series, and the worst of them. */
struct bh_forecast_mean {
    double scaled, smape;                                            /* scaled < 0: no series has one */
    double kept[BH_TRIAL_BOUNDS_MAX], headroom[BH_TRIAL_BOUNDS_MAX]; /* kept in percent */
    double worst[BH_TRIAL_BOUNDS_MAX];
    const char *worst_name[BH_TRIAL_BOUNDS_MAX]; /* NULL: no series had a firm bound */
};
void bh_forecast_average(const struct bh_forecast_report *report, const struct bh_forecast_options *options,
                         uint32_t horizon, struct bh_forecast_mean *ret_mean);

#endif
