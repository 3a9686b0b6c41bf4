#include "lab/forecast/forecast.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "lab/common/flags.h"
#include "lab/forecast/print.h"

enum { PATH_MAX_BYTES = 4096, SERIES_MAX = 10000, LEAST_GPUS = 4, MINUTE_S = 60 };

static bh_rc
forecast_read_horizons(void *place, const char *value, struct bh_err *err)
{
    struct bh_forecast_options *options = place;
    char item[BH_FLAG_ITEM_MAX];

    options->horizon_count = 0;
    while (bh_flag_next_item(&value, item)) {
        bh_rc rc;

        if (options->horizon_count == BH_FORECAST_HORIZONS_MAX)
            return bh_err_set(err, BH_RANGE, "at most 8");
        rc = bh_parse_span(item, &options->horizons_ns[options->horizon_count++], err);
        if (rc != BH_OK)
            return rc;
    }
    if (*value || options->horizon_count == 0)
        return bh_err_set(err, BH_INVALID, "expected spans, as in 1h,3h,24h");
    return BH_OK;
}

static bh_rc
forecast_read_quantiles(void *place, const char *value, struct bh_err *err)
{
    struct bh_forecast_options *options = place;
    char item[BH_FLAG_ITEM_MAX];

    options->q_count = 0;
    while (bh_flag_next_item(&value, item)) {
        uint64_t q_bp;
        bh_rc rc;

        if (options->q_count == BH_TRIAL_BOUNDS_MAX)
            return bh_err_set(err, BH_RANGE, "at most 4");
        rc = bh_parse_parts(item, 100, &q_bp, err);
        if (rc != BH_OK)
            return rc;
        if (q_bp == 0 || q_bp > 10000)
            return bh_err_set(err, BH_RANGE, "%s is not in 0.01 .. 100", item);
        options->q_bp[options->q_count++] = (uint32_t)q_bp;
    }
    if (*value || options->q_count == 0)
        return bh_err_set(err, BH_INVALID, "expected percents, as in 90,95,99");
    return BH_OK;
}

static bh_rc
forecast_read_least(void *place, const char *value, struct bh_err *err)
{
    struct bh_forecast_options *options = place;

    options->least_set = true;
    return bh_parse_u32(value, 0, UINT32_MAX, &options->least, err);
}

enum { FLAGS = 9 };

static void
forecast_make_flags(struct bh_forecast_options *options, struct bh_flag ret_flags[FLAGS])
{
    const struct bh_flag flags[FLAGS] = {
        { "--data", BH_FLAG_TEXT, &options->source, .value = "PATH",
          .help = "a file, a folder of *.csv, or one with helios/earth_vc" },
        { "--horizon", BH_FLAG_READ, options, .read = forecast_read_horizons, .value = "LIST",
          .help = "how far ahead (1h,3h,24h)" },
        { "--quantile", BH_FLAG_READ, options, .read = forecast_read_quantiles, .value = "LIST",
          .help = "percent to be kept below the bound (90,95,99)" },
        { "--window", BH_FLAG_SPAN, &options->window_ns, .value = "SPAN",
          .help = "how much past a bound is made of (7d)" },
        { "--every", BH_FLAG_SPAN, &options->every_ns, .value = "SPAN", .help = "length of a slot (30m)" },
        { "--take", BH_FLAG_CHOICE, &options->take, .names = bh_series_take_names,
          .name_count = BH_SERIES_TAKES, .value = "WHAT",
          .help = "of the rows in a slot: mean, last or max (mean)" },
        { "--least", BH_FLAG_READ, options, .read = forecast_read_least, .value = "N",
          .help = "leave out series of a lower mean (4 GPUs; else 0)" },
        { "--json", BH_FLAG_ON, &options->json, .help = "print JSON" },
        { "--svg", BH_FLAG_TEXT, &options->svg, .value = "FILE",
          .help = "draw demand and its bounds over time" },
    };

    memcpy(ret_flags, flags, sizeof flags);
}

void
bh_forecast_print_options(FILE *out)
{
    struct bh_forecast_options none;
    struct bh_flag flags[FLAGS];

    forecast_make_flags(&none, flags);
    bh_flags_print(out, flags, FLAGS);
}

/* A span as a number of slots, 1 .. most. */
static bh_rc
forecast_check_span(const struct bh_forecast_options *options, const char *name, bh_ns span,
                    struct bh_err *err)
{
    bool is_window = name[2] == 'w';
    uint32_t most = is_window ? BH_FORECAST_WINDOW_MAX : BH_FORECAST_STEPS_MAX;

    if (span == 0 || span % options->every_ns != 0)
        return bh_err_set(err, BH_INVALID, "%s: expected a multiple of --every", name);
    if (span / options->every_ns > most)
        return bh_err_set(err, BH_RANGE, "%s: at most %u slots of --every", name, most);
    return BH_OK;
}

static bh_rc
forecast_check_options(const struct bh_forecast_options *options, struct bh_err *err)
{
    bh_rc rc;

    if (!options->source)
        return bh_err_set(err, BH_INVALID, "forecast: --data PATH is missing");
    if (options->every_ns < MINUTE_S * BH_NS_PER_S)
        return bh_err_set(err, BH_RANGE, "--every: at least a minute");
    rc = forecast_check_span(options, "--window", options->window_ns, err);
    for (uint32_t i = 0; i < options->horizon_count && rc == BH_OK; i++)
        rc = forecast_check_span(options, "--horizon", options->horizons_ns[i], err);
    return rc;
}

bh_rc
bh_forecast_options_parse(int count, char **words, struct bh_forecast_options *ret_options,
                          struct bh_err *err)
{
    const bh_ns hour = 3600 * BH_NS_PER_S;
    struct bh_forecast_options options = {
        .every_ns = hour / 2,
        .window_ns = 7 * 24 * hour,
        .horizons_ns = { hour, 3 * hour, 24 * hour },
        .horizon_count = 3,
        .q_bp = { 9000, 9500, 9900 },
        .q_count = 3,
    };
    struct bh_flag flags[FLAGS];
    bh_rc rc;

    forecast_make_flags(&options, flags);
    rc = bh_flags_parse(flags, FLAGS, count, words, err);
    if (rc != BH_OK)
        return rc;
    rc = forecast_check_options(&options, err);
    if (rc != BH_OK)
        return rc;
    *ret_options = options;
    return BH_OK;
}

/* A run of bh_forecast_try. */
struct trying {
    const struct bh_forecast_options *options;
    struct bh_forecast_report *report;
    FILE *progress;
    struct bh_err *err;
};

static void
forecast_try_series(const struct trying *trying, struct bh_series *series)
{
    const struct bh_forecast_options *options = trying->options;
    struct bh_forecast_report *report = trying->report;
    struct bh_trial *trials = report->trials[report->count];
    struct bh_trial_question question = { .window = (uint32_t)(options->window_ns / options->every_ns),
                                          .count = options->q_count };
    bool worth = true;

    memcpy(question.q_bp, options->q_bp, sizeof question.q_bp);
    for (uint32_t i = 0; i < options->horizon_count && worth; i++) {
        question.steps = (uint32_t)(options->horizons_ns[i] / options->every_ns);
        bh_trial_run(series, &question, &trials[i], NULL, NULL);
        worth = trials[i].judged > 0;
    }
    if (worth)
        report->series[report->count++] = *series;
    else
        bh_series_fini(series);
    report->left_out += !worth;
}

static bh_rc
forecast_try_file(const struct trying *trying, const char *path)
{
    const struct bh_forecast_options *options = trying->options;
    struct bh_series_source source = { .file = path, .slot_ns = options->every_ns, .take = options->take };
    struct bh_series series;
    struct bh_buf text;
    uint32_t least;
    bh_rc rc;

    bh_buf_init(&text, BH_SERIES_FILE_MAX);
    rc = bh_file_read(path, BH_SERIES_FILE_MAX - 1, &text, trying->err);
    source.text = text.bytes;
    source.length = text.length;
    if (rc == BH_OK)
        rc = bh_series_parse(&source, &series, trying->err);
    bh_buf_fini(&text);
    if (rc != BH_OK)
        return rc;
    least = options->least_set ? options->least : series.gpus ? LEAST_GPUS : 0;
    if (bh_series_mean(&series) >= least) {
        forecast_try_series(trying, &series);
        return BH_OK;
    }
    bh_series_fini(&series);
    trying->report->left_out++;
    return BH_OK;
}

static int
forecast_is_csv(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 4 && entry->d_name[0] != '.' && strcmp(entry->d_name + length - 4, ".csv") == 0;
}

/* Byte order, whatever the locale. */
static int
forecast_compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void
forecast_make_room(struct bh_forecast_report *report, uint32_t count)
{
    report->series = calloc(count, sizeof *report->series);
    report->trials = calloc(count, sizeof *report->trials);
    BH_ASSERT(report->series && report->trials);
    report->room = count;
}

static bh_rc
forecast_try_entries(const struct trying *trying, const char *folder, struct dirent **entries, int count)
{
    bh_rc rc = BH_OK;

    for (int i = 0; i < count && rc == BH_OK; i++) {
        char path[PATH_MAX_BYTES];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);

        if (length < 0 || (size_t)length >= sizeof path)
            return bh_err_set(trying->err, BH_RANGE, "the path of %s is too long", entries[i]->d_name);
        rc = forecast_try_file(trying, path);
        if (trying->progress)
            fprintf(trying->progress, "\rforecast: %d of %d files%s", i + 1, count,
                    i + 1 == count || rc != BH_OK ? "\n" : "");
    }
    return rc;
}

static bh_rc
forecast_try_folder(const struct trying *trying, const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, forecast_is_csv, forecast_compare_names);
    bh_rc rc = BH_OK;

    if (count < 0)
        return bh_err_errno(trying->err, "cannot read the folder %s", folder);
    if (count == 0)
        rc = bh_err_set(trying->err, BH_NOT_FOUND, "there is no *.csv in %s", folder);
    if (count > SERIES_MAX)
        rc = bh_err_set(trying->err, BH_RANGE, "more than 10,000 files in %s", folder);
    if (rc == BH_OK) {
        forecast_make_room(trying->report, (uint32_t)count);
        rc = forecast_try_entries(trying, folder, entries, count);
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return rc;
}

/* What --data stands for: a file itself, or the folder that has the files. */
static bh_rc
forecast_try_source(const struct trying *trying)
{
    const char *source = trying->options->source;
    char inner[PATH_MAX_BYTES];
    struct stat about;
    int length;

    if (stat(source, &about) < 0)
        return bh_err_errno(trying->err, "cannot read %s", source);
    if (!S_ISDIR(about.st_mode)) {
        forecast_make_room(trying->report, 1);
        return forecast_try_file(trying, source);
    }
    length = snprintf(inner, sizeof inner, "%s/helios/earth_vc", source);
    if (length < 0 || (size_t)length >= sizeof inner)
        return bh_err_set(trying->err, BH_RANGE, "the path %.60s... is too long", source);
    return forecast_try_folder(trying, access(inner, F_OK) == 0 ? inner : source);
}

bh_rc
bh_forecast_try(const struct bh_forecast_options *options, FILE *progress,
                struct bh_forecast_report *ret_report, struct bh_err *err)
{
    struct bh_forecast_report report = { 0 };
    struct trying trying = { options, &report, progress, err };
    bh_rc rc = forecast_try_source(&trying);

    if (rc == BH_OK && report.count == 0)
        rc = bh_err_set(err, BH_NOT_FOUND, "no series in %s is long and large enough to be tried",
                        options->source);
    if (rc == BH_OK)
        *ret_report = report;
    else
        bh_forecast_report_fini(&report);
    return rc;
}

void
bh_forecast_report_fini(struct bh_forecast_report *report)
{
    for (uint32_t i = 0; i < report->count; i++)
        bh_series_fini(&report->series[i]);
    free(report->series);
    free(report->trials);
    memset(report, 0, sizeof *report);
}

bh_rc
bh_forecast_run(const struct bh_forecast_options *options, FILE *out, struct bh_err *err)
{
    struct bh_forecast_report report;
    bh_rc rc = bh_forecast_try(options, isatty(STDERR_FILENO) ? stderr : NULL, &report, err);

    if (rc != BH_OK)
        return rc;
    if (options->json)
        bh_forecast_print_json(options, &report, out);
    else
        bh_forecast_print_table(options, &report, out);
    if (options->svg)
        rc = bh_forecast_draw(options, &report, err);
    bh_forecast_report_fini(&report);
    return rc;
}
