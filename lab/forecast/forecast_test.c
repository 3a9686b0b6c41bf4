/* The mode forecast: its options, its files, what it writes. */
#include "lab/forecast/forecast.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/test.h"
#include "lab/forecast/mean.h"
#include "lab/forecast/print.h"

#define HOUR (3600 * BH_NS_PER_S)

enum { WORDS = 10, ROWS = 24 * 20 };

static const struct {
    const char *name;
    const char *words[WORDS];
    bh_rc rc;
    const char *says;
} options_rows[] = {
    { "only data", { "--data", "x" }, BH_OK, "" },
    { "all", { "--data", "x", "--window", "2d", "--every", "1h", "--least", "0", "--json" }, BH_OK, "" },
    { "lists", { "--data", "x", "--horizon", "1h,24h", "--quantile", "90,99.5" }, BH_OK, "" },
    { "the longest", { "--data", "x", "--window", "7d", "--horizon", "24h" }, BH_OK, "" },
    { "no data", { "--json" }, BH_INVALID, "--data PATH is missing" },
    { "unknown", { "--data", "x", "--colour" }, BH_INVALID, "unknown option --colour" },
    { "a value is missing", { "--data" }, BH_INVALID, "--data wants a value" },
    { "no span", { "--data", "x", "--horizon", "soon" }, BH_INVALID, "--horizon: " },
    { "an empty list", { "--data", "x", "--horizon", "" }, BH_INVALID, "expected spans" },
    { "an empty item", { "--data", "x", "--horizon", "1h,,3h" }, BH_INVALID, "--horizon: " },
    { "a comma at the end", { "--data", "x", "--quantile", "90," }, BH_INVALID, "--quantile: " },
    { "too many horizons",
      { "--data", "x", "--horizon", "1h,2h,3h,4h,5h,6h,7h,8h,9h" },
      BH_RANGE,
      "--horizon: at most 8" },
    { "too many quantiles",
      { "--data", "x", "--quantile", "50,60,70,80,90" },
      BH_RANGE,
      "--quantile: at most 4" },
    { "no quantile", { "--data", "x", "--quantile", "0" }, BH_RANGE, "is not in 0.01 .. 100" },
    { "over all", { "--data", "x", "--quantile", "100.01" }, BH_RANGE, "is not in 0.01 .. 100" },
    { "no whole slots", { "--data", "x", "--horizon", "45m" }, BH_INVALID, "a multiple of --every" },
    { "too far", { "--data", "x", "--horizon", "25h" }, BH_RANGE, "--horizon: at most 48 slots" },
    { "too long", { "--data", "x", "--window", "8d" }, BH_RANGE, "--window: at most 336 slots" },
    { "too short a slot", { "--data", "x", "--every", "59s" }, BH_RANGE, "at least a minute" },
    { "no such take", { "--data", "x", "--take", "best" }, BH_INVALID, "mean last max" },
};

static int
count_words(const char *const *words)
{
    int count = 0;

    while (count < WORDS && words[count])
        count++;
    return count;
}

static void
options_are_read_strictly(void **state)
{
    for (size_t i = 0; i < BH_COUNT(options_rows); i++) {
        const char *const *words = options_rows[i].words;
        struct bh_forecast_options options;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(options_rows[i].name,
                    bh_forecast_options_parse(count_words(words), (char **)(uintptr_t)words, &options, &err),
                    options_rows[i].rc);
        if (!strstr(err.msg, options_rows[i].says))
            BH_CHECK_STR(options_rows[i].name, err.msg, options_rows[i].says);
    }
    BH_CHECK_DONE();
}

static void
options_have_their_values(void **state)
{
    const char *words[] = { "--data", "x",   "--horizon", "1h,3h", "--quantile", "99.5",
                            "--take", "max", "--window",  "2d",    "--svg",      "f" };
    struct bh_forecast_options options;
    struct bh_err err;

    assert_int_equal(bh_forecast_options_parse(12, (char **)words, &options, &err), BH_OK);
    assert_int_equal(options.horizon_count, 2);
    assert_true(options.horizons_ns[1] == 3 * HOUR && options.window_ns == 48 * HOUR);
    assert_true(options.every_ns == HOUR / 2 && options.q_count == 1);
    assert_int_equal(options.q_bp[0], 9950);
    assert_int_equal(options.take, BH_SERIES_MAX);
    assert_string_equal(options.svg, "f");
}

/* A folder with two series of 20 days by the hour: one flat, one that leaps each day. */
struct world {
    char folder[32], flat[64], leaps[64], other[64], svg[64];
};

static void
write_series(const char *path, bool leaps)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs("time,value\n", file);
    for (int i = 0; i < ROWS; i++)
        fprintf(file, "%d,%d\n", i * 3600, leaps && i % 24 >= 12 ? 30 : 10);
    assert_int_equal(fclose(file), 0);
}

static int
make_world(void **state)
{
    static struct world w;

    w = (struct world){ .folder = "/tmp/bh-forecast-XXXXXX" };
    if (!mkdtemp(w.folder))
        return -1;
    snprintf(w.flat, sizeof w.flat, "%s/flat.csv", w.folder);
    snprintf(w.leaps, sizeof w.leaps, "%s/leaps.1h.csv", w.folder);
    snprintf(w.other, sizeof w.other, "%s/notes.txt", w.folder);
    snprintf(w.svg, sizeof w.svg, "%s/chart.svg", w.folder);
    write_series(w.flat, false);
    write_series(w.leaps, true);
    write_series(w.other, true);
    *state = &w;
    return 0;
}

static int
end_world(void **state)
{
    struct world *w = *state;

    unlink(w->flat), unlink(w->leaps), unlink(w->other), unlink(w->svg);
    return rmdir(w->folder);
}

static struct bh_forecast_options
options_for(const char *source)
{
    return (struct bh_forecast_options){
        .source = source,
        .every_ns = HOUR,
        .window_ns = 120 * HOUR,
        .horizons_ns = { HOUR, 24 * HOUR },
        .horizon_count = 2,
        .q_bp = { 9000, 9900 },
        .q_count = 2,
    };
}

/* The leaping series leaps up once in 24 slots: 90 % need not see it coming, 99 % must; a
 * day ahead it is as it was. */
static void
a_folder_is_tried(void **state)
{
    struct world *w = *state;
    struct bh_forecast_options options = options_for(w->folder);
    struct bh_forecast_report report;
    struct bh_forecast_mean mean;
    struct bh_err err = { 0 };

    assert_int_equal(bh_forecast_try(&options, NULL, &report, &err), BH_OK);
    assert_int_equal(report.count, 2);
    assert_string_equal(report.series[0].name, "flat");
    assert_string_equal(report.series[1].name, "leaps");
    assert_int_equal(report.trials[1][0].judged, ROWS * 4 / 10);
    assert_int_equal(report.trials[1][0].bounds[0].kept, ROWS * 4 / 10 * 23 / 24);
    assert_int_equal(report.trials[1][0].bounds[1].kept, ROWS * 4 / 10);
    assert_true(report.trials[1][1].error == 0);
    bh_forecast_average(&report, &options, 0, &mean);
    assert_true(mean.scaled < 0); /* as yesterday, always: nothing to scale by */
    assert_string_equal(mean.worst_name[0], "leaps");
    assert_in_range(mean.kept[0] * 100, 9791, 9793); /* (100 + 95.83) / 2 */
    bh_forecast_report_fini(&report);
}

static char *
written(const struct bh_forecast_options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct bh_err err = { 0 };

    assert_non_null(out);
    assert_int_equal(bh_forecast_run(options, out, &err), BH_OK);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void
a_table_is_written(void **state)
{
    struct world *w = *state;
    struct bh_forecast_options options = options_for(w->folder);
    char *text = written(&options);

    assert_non_null(strstr(text, "2 series of /tmp/"));
    assert_non_null(strstr(text, "slots of 1h (mean), window 5d, last 40 % judged\n"));
    assert_non_null(strstr(text, "\nleaps                -    8.3"));
    assert_non_null(strstr(text, "\nworst                          |     95.8 leaps"));
    assert_non_null(strstr(text, "\n24h "));
    free(text);
}

/* Five days by the hour are 120 changes: too few for 99.9 %. */
static void
what_was_never_firm_is_not_measured(void **state)
{
    struct world *w = *state;
    struct bh_forecast_options options = options_for(w->folder);
    char *text;

    options.q_bp[1] = 9990;
    text = written(&options);
    assert_non_null(strstr(text, "|        -     -       -\n"));
    assert_non_null(strstr(text, "|        - -            \n"));
    free(text);
    options.json = true;
    text = written(&options);
    assert_non_null(strstr(text, "{\"quantile_bp\":9990}"));
    free(text);
}

static void
json_is_written(void **state)
{
    struct world *w = *state;
    struct bh_forecast_options options = options_for(w->leaps);
    struct bh_json *json = NULL;
    struct bh_err err = { 0 };
    bh_json_value first;
    char *text;

    options.json = true;
    text = written(&options);
    assert_int_equal(bh_json_parse(text, strlen(text), &json, &err), BH_OK);
    first = bh_json_at(bh_json_get(bh_json_root(json), "mean"), 0);
    first = bh_json_at(bh_json_get(first, "bounds"), 0);
    assert_int_equal(bh_json_integer(bh_json_get(first, "kept_bp"), 0), 9583);
    assert_string_equal(bh_json_text(bh_json_get(first, "worst"), ""), "leaps");
    bh_json_free(json);
    free(text);
}

static void
a_chart_is_drawn(void **state)
{
    struct world *w = *state;
    struct bh_forecast_options options = options_for(w->folder);
    struct bh_buf chart;
    struct bh_err err = { 0 };

    options.svg = w->svg;
    free(written(&options));
    bh_buf_init(&chart, 1 << 20);
    assert_int_equal(bh_file_read(w->svg, 1 << 19, &chart, &err), BH_OK);
    assert_non_null(strstr(bh_buf_text(&chart), ">Demand, and its bounds 1h before</text>"));
    assert_non_null(strstr(bh_buf_text(&chart), ">bound at 99 %</text>"));
    bh_buf_fini(&chart);
}

static void
sources_that_cannot_serve_are_named(void **state)
{
    struct world *w = *state;
    struct bh_forecast_options options = options_for("/nowhere/at/all");
    struct bh_forecast_report report;
    struct bh_err err = { 0 };

    assert_int_equal(bh_forecast_try(&options, NULL, &report, &err), BH_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/nowhere/at/all"));
    options = options_for(w->folder);
    options.least = 31;
    options.least_set = true;
    assert_int_equal(bh_forecast_try(&options, NULL, &report, &err), BH_NOT_FOUND);
    assert_non_null(strstr(err.msg, "no series in"));
    assert_int_equal(bh_file_replace(w->flat, "time,value\n0,x\n", 15, 0644, &err), BH_OK);
    options.least_set = false;
    assert_int_equal(bh_forecast_try(&options, NULL, &report, &err), BH_INVALID);
    assert_non_null(strstr(err.msg, "/flat.csv:2: x: expected a number"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(options_are_read_strictly),
    cmocka_unit_test(options_have_their_values),
    cmocka_unit_test_setup_teardown(a_folder_is_tried, make_world, end_world),
    cmocka_unit_test_setup_teardown(a_table_is_written, make_world, end_world),
    cmocka_unit_test_setup_teardown(what_was_never_firm_is_not_measured, make_world, end_world),
    cmocka_unit_test_setup_teardown(json_is_written, make_world, end_world),
    cmocka_unit_test_setup_teardown(a_chart_is_drawn, make_world, end_world),
    cmocka_unit_test_setup_teardown(sources_that_cannot_serve_are_named, make_world, end_world),
};

BH_TEST_MAIN(tests)
