#include "cli/site/series.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/time.h"
#include "cli/command/pick.h"
#include "cli/output/output.h"
#include "cli/output/table.h"
#include "model/series.h"

enum { PATH_BYTES_MAX = 1024, CELL_SIZE = 256, TREND_WIDE = 24, TREND_LEVELS = 8 };

/* ---- what is asked ---- */

/* "7", "gpu0", "tenant/acme" as the API names it. */
static bh_rc
series_put_object(const struct bh_cli *cli, struct bh_buf *out, struct bh_err *err)
{
    const char *word = cli->args->count > 0 ? cli->args->arguments[0] : "site";
    char name[BH_PICK_NAME_MAX];
    struct bh_err ignored;
    uint64_t job;
    bh_rc rc;

    if (bh_parse_u64(word, &job, &ignored) == BH_OK) {
        bh_buf_printf(out, "job/%" PRIu64, job);
        return BH_OK;
    }
    for (enum bh_series_kind kind = 0; kind < BH_SERIES_KINDS; kind++) {
        size_t length = strlen(bh_series_kind_names[kind]);

        if (strncmp(word, bh_series_kind_names[kind], length) == 0
            && (word[length] == '/' || strcmp(word, "site") == 0)) {
            bh_buf_puts(out, word);
            return BH_OK;
        }
    }
    rc = bh_pick_target(cli, name, err);
    if (rc == BH_OK)
        bh_buf_printf(out, "%s/%s", strncmp(name, "GPU-", 4) == 0 ? "gpu" : "node", name);
    return rc;
}

static bh_rc
series_put_path(const struct bh_cli *cli, struct bh_buf *path, struct bh_err *err)
{
    static const struct {
        enum bh_option_id option;
        const char *parameter;
    } options[] = { { BH_OPT_SPAN, "span" }, { BH_OPT_SINCE, "since" } };
    BH_AUTO(bh_buf_fini) struct bh_buf object = { .max = PATH_BYTES_MAX };
    bh_rc rc = series_put_object(cli, &object, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_puts(path, "/v1/series?object=");
    bh_http_put_encoded(path, bh_buf_text(&object) ? bh_buf_text(&object) : "");
    if (cli->args->count > 1) {
        bh_buf_puts(path, "&quantity=");
        bh_http_put_encoded(path, cli->args->arguments[1]);
    }
    for (size_t i = 0; i < BH_COUNT(options); i++) {
        if (!cli->args->options[options[i].option].given)
            continue;
        bh_buf_printf(path, "&%s=", options[i].parameter);
        bh_http_put_encoded(path, cli->args->options[options[i].option].text);
    }
    return bh_buf_text(path) ? BH_OK : bh_err_set(err, BH_INVALID, "series: an argument is too long");
}

/* ---- what is shown ---- */

static uint64_t
series_number(bh_json_value object, const char *name)
{
    return bh_json_number(bh_json_get(object, name), 0);
}

static void
series_put_cell(struct bh_table *table, bh_json_value series, uint64_t value)
{
    enum bh_series_unit unit = bh_series_unit_find(bh_json_text(bh_json_get(series, "unit"), ""));
    char memory[CELL_SIZE];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_series_put_value(&text, unit < BH_UNITS ? unit : BH_UNIT_COUNT, value);
    bh_table_put(table, bh_buf_text(&text));
}

/* What was usual before: "10.0 % to 90.0 %". */
static void
series_put_usual(struct bh_table *table, bh_json_value series)
{
    enum bh_series_unit unit = bh_series_unit_find(bh_json_text(bh_json_get(series, "unit"), ""));
    char memory[CELL_SIZE];
    struct bh_buf text;

    if (!bh_json_get(series, "usual_max") || unit == BH_UNITS) {
        bh_table_put(table, NULL);
        return;
    }
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_series_put_value(&text, unit, series_number(series, "usual_min"));
    bh_buf_puts(&text, " to ");
    bh_series_put_value(&text, unit, series_number(series, "usual_max"));
    bh_table_put(table, bh_buf_text(&text));
}

struct series_time {
    uint64_t since_ns, until_ns;
};

/* Means over the whole time as blocks of eight heights; a gap is a blank. */
static void
series_put_trend(struct bh_table *table, bh_json_value series, const struct series_time *time)
{
    bh_json_value points = bh_json_get(series, "points");
    uint64_t span = time->until_ns > time->since_ns ? time->until_ns - time->since_ns : 1, most = 1;
    struct bh_point columns[TREND_WIDE] = { 0 };
    char memory[CELL_SIZE];
    struct bh_buf text;

    for (size_t i = 0; i < bh_json_count(points); i++) {
        bh_json_value point = bh_json_at(points, i);
        uint64_t at = (series_number(point, "at_ns") - time->since_ns) / (span / TREND_WIDE + 1);

        if (at < TREND_WIDE)
            bh_point_add(&columns[at], series_number(point, "mean"));
    }
    for (size_t i = 0; i < TREND_WIDE; i++)
        most = bh_point_mean(&columns[i]) > most ? bh_point_mean(&columns[i]) : most;
    bh_buf_init_fixed(&text, memory, sizeof memory);
    for (size_t i = 0; i < TREND_WIDE; i++)
        if (columns[i].count > 0) /* U+2581 to U+2588 */
            bh_buf_printf(&text, "\342\226%c",
                          (char)(0x81 + bh_point_mean(&columns[i]) * (TREND_LEVELS - 1) / most));
        else
            bh_buf_putc(&text, ' ');
    bh_table_put(table, bh_buf_text(&text));
}

static void
series_put_summary(struct bh_table *table, bh_json_value series, const struct series_time *time)
{
    bh_json_value points = bh_json_get(series, "points");
    uint64_t least = UINT64_MAX, most = 0;
    size_t count = bh_json_count(points);

    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        uint64_t min = series_number(bh_json_at(points, i), "min"),
                 max = series_number(bh_json_at(points, i), "max");

        least = min < least ? min : least;
        most = max > most ? max : most;
    }
    bh_table_put(table, bh_json_text(bh_json_get(series, "quantity"), ""));
    series_put_cell(table, series, series_number(bh_json_at(points, count - 1), "mean"));
    series_put_cell(table, series, least);
    series_put_cell(table, series, most);
    series_put_usual(table, series);
    series_put_trend(table, series, time);
}

static void
series_put_head(struct bh_table *table, const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        bh_table_put(table, names[i]);
}

static void
series_put_summaries(const struct bh_cli *cli, bh_json_value root, struct bh_buf *out)
{
    static const char *const head[] = { "QUANTITY", "LAST", "LEAST", "MOST", "USUAL", "TREND" };
    const struct series_time time = { series_number(root, "since_ns"), series_number(root, "until_ns") };
    BH_AUTO(bh_table_free) struct bh_table *table = bh_table_new(BH_COUNT(head));
    bh_json_value items = bh_json_get(root, "items");

    if (!bh_cli_flag(cli, BH_OPT_NO_HEADERS))
        series_put_head(table, head, BH_COUNT(head));
    for (size_t i = 0; i < bh_json_count(items); i++)
        series_put_summary(table, bh_json_at(items, i), &time);
    bh_table_render(table, out);
}

static void
series_put_points(const struct bh_cli *cli, bh_json_value series, struct bh_buf *out)
{
    static const char *const head[] = { "TIME", "LEAST", "MEAN", "MOST", "SAMPLES" };
    BH_AUTO(bh_table_free) struct bh_table *table = bh_table_new(BH_COUNT(head));
    bh_json_value points = bh_json_get(series, "points");

    if (!bh_cli_flag(cli, BH_OPT_NO_HEADERS))
        series_put_head(table, head, BH_COUNT(head));
    for (size_t i = 0; i < bh_json_count(points); i++) {
        bh_json_value point = bh_json_at(points, i);
        char memory[CELL_SIZE];
        struct bh_buf text;

        bh_buf_init_fixed(&text, memory, sizeof memory);
        bh_time_put_utc(&text, series_number(point, "at_ns"));
        bh_table_put(table, bh_buf_text(&text));
        series_put_cell(table, series, series_number(point, "min"));
        series_put_cell(table, series, series_number(point, "mean"));
        series_put_cell(table, series, series_number(point, "max"));
        snprintf(memory, sizeof memory, "%" PRIu64, series_number(point, "samples"));
        bh_table_put(table, memory);
    }
    bh_table_render(table, out);
}

bh_rc
bh_cli_series(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_buf_fini) struct bh_buf path = { .max = PATH_BYTES_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = series_put_path(cli, &path, err);

    if (rc == BH_OK)
        rc = bh_cli_fetch(cli, bh_buf_text(&path), &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (cli->args->count > 1)
        series_put_points(cli, bh_json_at(bh_json_get(bh_json_root(json), "items"), 0), &out);
    else
        series_put_summaries(cli, bh_json_root(json), &out);
    return bh_output_write(&out, err);
}
