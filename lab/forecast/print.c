#include "lab/forecast/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "lab/common/chart.h"
#include "lab/forecast/forecast.h"
#include "lab/forecast/mean.h"

enum { SPAN_BYTES = 24, JSON_MAX = 256 << 20, DAY_S = 86400 };

/* In the largest unit that divides it: 30m, 24h, 7d. */
static const char *
print_span_text(bh_ns span, char text[SPAN_BYTES])
{
    uint64_t s = span / BH_NS_PER_S;
    uint64_t unit = s % DAY_S == 0 && s > DAY_S ? DAY_S : s % 3600 == 0 ? 3600 : 60;

    if (s % 60 != 0)
        snprintf(text, SPAN_BYTES, "%" PRIu64 "s", s);
    else
        snprintf(text, SPAN_BYTES, "%" PRIu64 "%c", s / unit, unit == DAY_S ? 'd' : unit == 3600 ? 'h' : 'm');
    return text;
}

static void
print_head(const struct bh_forecast_options *options, uint32_t horizon, FILE *out)
{
    char span[SPAN_BYTES];

    fprintf(out, "\n%-14s  scaled  sMAPE", print_span_text(options->horizons_ns[horizon], span));
    for (uint32_t i = 0; i < options->q_count; i++)
        fprintf(out, "  | %6.4g %%  room    next", options->q_bp[i] / 100.0);
    putc('\n', out);
}

static void
print_scaled(double scaled, FILE *out)
{
    if (scaled < 0)
        fputs("       -", out);
    else
        fprintf(out, "  %6.3f", scaled);
}

static void
print_trial(const struct bh_forecast_options *options, const char *name, const struct bh_trial *trial,
            FILE *out)
{
    fprintf(out, "%-14.14s", name);
    print_scaled(trial->scaled, out);
    fprintf(out, "  %5.1f", trial->smape);
    for (uint32_t i = 0; i < options->q_count; i++) {
        const struct bh_trial_bound *bound = &trial->bounds[i];

        if (bound->judged == 0)
            fputs("  |        -     -       -", out);
        else
            fprintf(out, "  |   %6.1f %5.2f %7.1f", 100.0 * bound->kept / bound->judged, bound->headroom,
                    (double)bound->next.value / BH_SERIES_WHOLE);
    }
    putc('\n', out);
}

static void
print_mean(const struct bh_forecast_options *options, const struct bh_forecast_mean *mean, FILE *out)
{
    fprintf(out, "%-14s", "mean");
    print_scaled(mean->scaled, out);
    fprintf(out, "  %5.1f", mean->smape);
    for (uint32_t i = 0; i < options->q_count; i++)
        if (mean->worst_name[i])
            fprintf(out, "  |   %6.1f %5.2f        ", mean->kept[i], mean->headroom[i]);
        else
            fputs("  |        -     -        ", out);
    fprintf(out, "\n%-14s%15s", "worst", "");
    for (uint32_t i = 0; i < options->q_count; i++)
        if (mean->worst_name[i])
            fprintf(out, "  |   %6.1f %-13.13s", mean->worst[i], mean->worst_name[i]);
        else
            fputs("  |        - -            ", out);
    putc('\n', out);
}

void
bh_forecast_print_table(const struct bh_forecast_options *options, const struct bh_forecast_report *report,
                        FILE *out)
{
    char every[SPAN_BYTES], window[SPAN_BYTES];

    fprintf(out,
            "%u series of %s (%u left out), slots of %s (%s), window %s, last 40 %% judged\n"
            "scaled: error of the last value / of yesterday's; %%: came at most to the bound;\n"
            "room: mean of what the bound kept free, in units of mean demand; next: the bound "
            "now\n",
            report->count, options->source, report->left_out, print_span_text(options->every_ns, every),
            bh_series_take_names[options->take], print_span_text(options->window_ns, window));
    for (uint32_t h = 0; h < options->horizon_count; h++) {
        struct bh_forecast_mean mean;

        print_head(options, h, out);
        for (uint32_t i = 0; i < report->count; i++)
            print_trial(options, report->series[i].name, &report->trials[i][h], out);
        bh_forecast_average(report, options, h, &mean);
        print_mean(options, &mean, out);
    }
}

static int64_t
print_rounded(double value)
{
    return (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
}

static void
print_put_bound(struct bh_json_writer *w, uint32_t q_bp, const struct bh_trial_bound *bound)
{
    bh_json_open(w, NULL, '{');
    bh_json_i64(w, "coverage_judged", bound->coverage.judged);
    bh_json_i64(w, "coverage_kept", bound->coverage.kept);
    bh_json_i64(w, "headroom_permille", print_rounded(bound->headroom * 1000));
    bh_json_i64(w, "judged", bound->judged);
    bh_json_i64(w, "kept", bound->kept);
    bh_json_bool(w, "next_firm", bound->next.firm);
    bh_json_i64(w, "next_level_milli", bound->next.level);
    bh_json_i64(w, "next_milli", bound->next.value);
    bh_json_i64(w, "quantile_bp", q_bp);
    bh_json_close(w, '}');
}

static void
print_put_trial(struct bh_json_writer *w, const struct bh_forecast_options *options, uint32_t horizon,
                const struct bh_trial *trial)
{
    bh_json_open(w, NULL, '{');
    bh_json_open(w, "bounds", '[');
    for (uint32_t i = 0; i < options->q_count; i++)
        print_put_bound(w, options->q_bp[i], &trial->bounds[i]);
    bh_json_close(w, ']');
    bh_json_i64(w, "error_milli", print_rounded(trial->error * 1000));
    bh_json_i64(w, "horizon_s", (int64_t)(options->horizons_ns[horizon] / BH_NS_PER_S));
    bh_json_i64(w, "mean_milli", print_rounded(trial->mean * 1000));
    if (trial->scaled >= 0)
        bh_json_i64(w, "scaled_permille", print_rounded(trial->scaled * 1000));
    bh_json_i64(w, "smape_permille", print_rounded(trial->smape * 10));
    bh_json_close(w, '}');
}

/* Where no series had a bound that was firm, there is nothing but the question. */
static void
print_put_mean_bound(struct bh_json_writer *w, uint32_t q_bp, uint32_t at,
                     const struct bh_forecast_mean *mean)
{
    bh_json_open(w, NULL, '{');
    if (mean->worst_name[at]) {
        bh_json_i64(w, "headroom_permille", print_rounded(mean->headroom[at] * 1000));
        bh_json_i64(w, "kept_bp", print_rounded(mean->kept[at] * 100));
    }
    bh_json_i64(w, "quantile_bp", q_bp);
    if (mean->worst_name[at]) {
        bh_json_str(w, "worst", mean->worst_name[at]);
        bh_json_i64(w, "worst_bp", print_rounded(mean->worst[at] * 100));
    }
    bh_json_close(w, '}');
}

static void
print_put_mean(struct bh_json_writer *w, const struct bh_forecast_options *options, uint32_t horizon,
               const struct bh_forecast_mean *mean)
{
    bh_json_open(w, NULL, '{');
    bh_json_open(w, "bounds", '[');
    for (uint32_t i = 0; i < options->q_count; i++)
        print_put_mean_bound(w, options->q_bp[i], i, mean);
    bh_json_close(w, ']');
    bh_json_i64(w, "horizon_s", (int64_t)(options->horizons_ns[horizon] / BH_NS_PER_S));
    if (mean->scaled >= 0)
        bh_json_i64(w, "scaled_permille", print_rounded(mean->scaled * 1000));
    bh_json_i64(w, "smape_permille", print_rounded(mean->smape * 10));
    bh_json_close(w, '}');
}

static void
print_put_series(struct bh_json_writer *w, const struct bh_forecast_options *options,
                 const struct bh_forecast_report *report, uint32_t at)
{
    bh_json_open(w, NULL, '{');
    bh_json_open(w, "horizons", '[');
    for (uint32_t h = 0; h < options->horizon_count; h++)
        print_put_trial(w, options, h, &report->trials[at][h]);
    bh_json_close(w, ']');
    bh_json_str(w, "name", report->series[at].name);
    bh_json_i64(w, "slots", report->series[at].count);
    bh_json_close(w, '}');
}

void
bh_forecast_print_json(const struct bh_forecast_options *options, const struct bh_forecast_report *report,
                       FILE *out)
{
    struct bh_buf text;
    struct bh_json_writer w;

    bh_buf_init(&text, JSON_MAX);
    w = bh_json_begin(&text);
    bh_json_open(&w, NULL, '{');
    bh_json_i64(&w, "left_out", report->left_out);
    bh_json_open(&w, "mean", '[');
    for (uint32_t h = 0; h < options->horizon_count; h++) {
        struct bh_forecast_mean mean;

        bh_forecast_average(report, options, h, &mean);
        print_put_mean(&w, options, h, &mean);
    }
    bh_json_close(&w, ']');
    bh_json_open(&w, "series", '[');
    for (uint32_t i = 0; i < report->count; i++)
        print_put_series(&w, options, report, i);
    bh_json_close(&w, ']');
    bh_json_i64(&w, "slot_s", (int64_t)(options->every_ns / BH_NS_PER_S));
    bh_json_i64(&w, "window_s", (int64_t)(options->window_ns / BH_NS_PER_S));
    bh_json_close(&w, '}');
    fprintf(out, "%s\n", bh_buf_text(&text) ? bh_buf_text(&text) : "");
    bh_buf_fini(&text);
}

/* Sums over the series, slot by slot: line 0 is the demand, the others its bounds. */
struct sums {
    uint64_t first;
    uint32_t count, lines;
    double *x, *y[1 + BH_TRIAL_BOUNDS_MAX];
    uint32_t *summed; /* series that this slot has */
};

static void
print_add_moment(void *self, const struct bh_trial_moment *moment)
{
    struct sums *sums = self;
    uint64_t at = moment->slot - sums->first;

    BH_ASSERT(at < sums->count);
    sums->summed[at]++;
    sums->y[0][at] += (double)moment->came / BH_SERIES_WHOLE;
    for (uint32_t i = 1; i < sums->lines; i++)
        sums->y[i][at] += (double)moment->bounds[i - 1].value / BH_SERIES_WHOLE;
}

/* From the first slot of any series to the last of any; false when that is too far. */
static bool
print_find_range(const struct bh_forecast_report *report, struct sums *sums)
{
    uint64_t end = 0;

    sums->first = UINT64_MAX;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct bh_series *series = &report->series[i];

        sums->first = series->first < sums->first ? series->first : sums->first;
        end = series->first + series->count > end ? series->first + series->count : end;
    }
    if (end - sums->first > BH_SERIES_SLOTS_MAX)
        return false;
    sums->count = (uint32_t)(end - sums->first);
    return true;
}

static void
print_sums_init(struct sums *sums)
{
    sums->summed = calloc(sums->count, sizeof *sums->summed);
    sums->x = calloc(sums->count, sizeof *sums->x);
    BH_ASSERT(sums->summed && sums->x);
    for (uint32_t i = 0; i < sums->lines; i++) {
        sums->y[i] = calloc(sums->count, sizeof *sums->y[i]);
        BH_ASSERT(sums->y[i]);
    }
}

static void
print_sums_fini(struct sums *sums)
{
    for (uint32_t i = 0; i < sums->lines; i++)
        free(sums->y[i]);
    free(sums->x);
    free(sums->summed);
}

/* A slot that some series lacks would show a dip that was none: a gap instead. */
static void
print_fill(struct sums *sums, const struct bh_forecast_options *options,
           const struct bh_forecast_report *report)
{
    struct bh_trial_question question = {
        .steps = (uint32_t)(options->horizons_ns[0] / options->every_ns),
        .window = (uint32_t)(options->window_ns / options->every_ns),
        .count = options->q_count,
    };

    memcpy(question.q_bp, options->q_bp, sizeof question.q_bp);
    for (uint32_t i = 0; i < report->count; i++) {
        struct bh_trial unused;

        bh_trial_run(&report->series[i], &question, &unused, print_add_moment, sums);
    }
    for (uint32_t at = 0; at < sums->count; at++) {
        sums->x[at] = (double)at * (double)(options->every_ns / BH_NS_PER_S) / DAY_S;
        for (uint32_t i = 0; i < sums->lines && sums->summed[at] < report->count; i++)
            sums->y[i][at] = NAN;
    }
}

static bh_rc
print_save_chart(const struct sums *sums, const struct bh_forecast_options *options, struct bh_err *err)
{
    struct bh_chart_line lines[1 + BH_TRIAL_BOUNDS_MAX];
    char names[1 + BH_TRIAL_BOUNDS_MAX][48], span[SPAN_BYTES], title[96];
    struct bh_chart chart = { title, "days", "sum of all series", lines, sums->lines };

    snprintf(title, sizeof title, "Demand, and its bounds %s before",
             print_span_text(options->horizons_ns[0], span));
    snprintf(names[0], sizeof names[0], "demand");
    for (uint32_t i = 0; i < sums->lines; i++) {
        if (i > 0)
            snprintf(names[i], sizeof names[i], "bound at %.4g %%", options->q_bp[i - 1] / 100.0);
        lines[i] = (struct bh_chart_line){ names[i], sums->x, sums->y[i], sums->count };
    }
    return bh_chart_save(options->svg, &chart, err);
}

bh_rc
bh_forecast_draw(const struct bh_forecast_options *options, const struct bh_forecast_report *report,
                 struct bh_err *err)
{
    struct sums sums = { .lines = 1 + options->q_count };
    bh_rc rc;

    if (!print_find_range(report, &sums))
        return bh_err_set(err, BH_RANGE, "the series lie too far apart for one chart");
    print_sums_init(&sums);
    print_fill(&sums, options, report);
    rc = print_save_chart(&sums, options, err);
    print_sums_fini(&sums);
    return rc;
}
