#include "lab/forecast/mean.h"

#include <string.h>

/* One quantile over all series: those without a firm bound do not count. */
static void
average_bound(const struct bh_forecast_report *report, uint32_t horizon, uint32_t at,
              struct bh_forecast_mean *mean)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->count; i++) {
        const struct bh_trial_bound *bound = &report->trials[i][horizon].bounds[at];
        double kept = bound->judged ? 100.0 * bound->kept / bound->judged : 0;

        if (bound->judged == 0)
            continue;
        count++;
        mean->kept[at] += kept;
        mean->headroom[at] += bound->headroom;
        if (mean->worst_name[at] && kept >= mean->worst[at])
            continue;
        mean->worst[at] = kept;
        mean->worst_name[at] = report->series[i].name;
    }
    mean->kept[at] /= count ? count : 1;
    mean->headroom[at] /= count ? count : 1;
}

void
bh_forecast_average(const struct bh_forecast_report *report, const struct bh_forecast_options *options,
                    uint32_t horizon, struct bh_forecast_mean *ret_mean)
{
    uint32_t scaled = 0;

    memset(ret_mean, 0, sizeof *ret_mean);
    for (uint32_t i = 0; i < report->count; i++) {
        const struct bh_trial *trial = &report->trials[i][horizon];

        ret_mean->smape += trial->smape / report->count;
        ret_mean->scaled += trial->scaled < 0 ? 0 : trial->scaled;
        scaled += trial->scaled >= 0;
    }
    ret_mean->scaled = scaled ? ret_mean->scaled / scaled : -1;
    for (uint32_t i = 0; i < options->q_count; i++)
        average_bound(report, horizon, i, ret_mean);
}
