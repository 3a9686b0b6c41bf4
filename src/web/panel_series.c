/* Samples over time: a small picture of each quantity, which charts.js draws larger, and a table of the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/series.h"
#include "web/panel.h"
#include "web/show.h"
#include "web/svg.h"

enum {
    POINTS_MAX = 512,
    TABLE_ROWS = 12,
    VALUE_SIZE = 64,
    TITLE_MAX = 256,
    SERIES_MAX = BH_SERIES_A_KIND_MAX
};

/* What is shown of one quantity. */
struct shown_series {
    const char *quantity, *title;
    enum bh_series_unit unit;
    struct bh_svg_series picture;
    struct bh_svg_point points[POINTS_MAX];
    uint64_t least, most, last;
    bool current; /* its last point is of now */
};

struct shown_time {
    uint64_t since_ns, step_ns, until_ns;
    uint32_t steps;
};

/* ---- reading ---- */

/* The picture's height: all of a percentage; else what was reached and a tenth above it, and at least one of
 * the unit, so that next to nothing looks like that. */
static uint64_t
series_top(const struct shown_series *shown)
{
    uint64_t most = shown->most > shown->picture.usual_max ? shown->most : shown->picture.usual_max;
    uint64_t one = bh_series_unit_scale(shown->unit, 0).one;

    if (shown->unit == BH_UNIT_BASIS_POINTS)
        return 10000;
    return most < one ? one : most + most / 10 + 1;
}

static void
series_read_points(struct shown_series *shown, bh_json_value points, const struct shown_time *time)
{
    for (size_t i = 0; i < bh_json_count(points) && shown->picture.count < POINTS_MAX; i++) {
        bh_json_value point = bh_json_at(points, i);
        uint64_t step = (bh_show_number_of(point, "at_ns") - time->since_ns) / time->step_ns;
        const struct bh_svg_point read = { (uint32_t)step, bh_show_number_of(point, "min"),
                                           bh_show_number_of(point, "mean"),
                                           bh_show_number_of(point, "max") };

        if (step >= time->steps)
            continue;
        shown->least = shown->picture.count == 0 || read.min < shown->least ? read.min : shown->least;
        shown->most = read.max > shown->most ? read.max : shown->most;
        shown->last = read.mean;
        shown->current = step + 2 >= time->steps;
        shown->points[shown->picture.count++] = read;
    }
}

static void
series_read(struct shown_series *shown, bh_json_value series, const struct shown_time *time)
{
    enum bh_series_unit unit = bh_series_unit_find(bh_show_text_of(series, "unit"));

    *shown = (struct shown_series){ .quantity = bh_show_text_of(series, "quantity"),
                                    .title = bh_show_text_of(series, "title"),
                                    .unit = unit < BH_UNITS ? unit : BH_UNIT_COUNT };
    series_read_points(shown, bh_json_get(series, "points"), time);
    shown->picture.points = shown->points;
    shown->picture.steps = time->steps;
    shown->picture.has_usual = bh_json_get(series, "usual_max") != NULL;
    shown->picture.usual_min = bh_show_number_of(series, "usual_min");
    shown->picture.usual_max = bh_show_number_of(series, "usual_max");
    shown->picture.top = series_top(shown);
}

static struct shown_time
series_read_time(bh_json_value data)
{
    struct shown_time time = { bh_show_number_of(data, "since_ns"), bh_show_number_of(data, "step_ns"),
                               bh_show_number_of(data, "until_ns"), 1 };

    if (time.step_ns == 0)
        time.step_ns = 1;
    if (time.until_ns > time.since_ns)
        time.steps = (uint32_t)((time.until_ns - time.since_ns) / time.step_ns + 1);
    return time;
}

/* ---- writing ---- */

static const char *
series_value(const struct shown_series *shown, uint64_t value, char text[VALUE_SIZE])
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, VALUE_SIZE);
    bh_series_put_value(&out, shown->unit, value);
    return bh_buf_text(&out) ? bh_buf_text(&out) : "";
}

/* How far back: links, of which one is where the reader is. */
static void
series_put_spans(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const spans[] = { "hour", "day", "month" };
    const char *present = bh_page_field(call->page, "span");

    bh_html_open(html, "p");
    bh_html_attr(html, "class", "spans");
    bh_html_text(html, "The last ");
    for (size_t i = 0; i < BH_COUNT(spans); i++) {
        char query[32];

        snprintf(query, sizeof query, "?span=%s#series", spans[i]);
        bh_html_open(html, "a");
        bh_html_attr(html, "href",
                     bh_arena_printf(call->page->request->arena, "%s%s", bh_page_address(call->page), query));
        if (strcmp(present[0] ? present : spans[0], spans[i]) == 0)
            bh_html_attr(html, "aria-current", "true");
        bh_html_text(html, spans[i]);
        bh_html_close(html, "a");
        bh_html_text(html, " ");
    }
    bh_html_close(html, "p");
}

static void
series_put_caption(struct bh_html *html, const struct shown_series *shown)
{
    char text[VALUE_SIZE];

    bh_html_open(html, "figcaption");
    bh_html_element(html, "span", NULL, shown->title);
    bh_html_text(html, " ");
    if (shown->current)
        bh_html_element(html, "strong", NULL, series_value(shown, shown->last, text));
    else
        bh_show_unavailable(html, "no sample just now");
    bh_html_close(html, "figcaption");
}

static void
series_put_range(struct bh_html *html, const struct shown_series *shown)
{
    char least[VALUE_SIZE], most[VALUE_SIZE], text[TITLE_MAX];
    size_t used = (size_t)snprintf(text, sizeof text, "%s to %s", series_value(shown, shown->least, least),
                                   series_value(shown, shown->most, most));

    if (shown->picture.has_usual)
        snprintf(text + used, sizeof text - used, "; usual: %s to %s",
                 series_value(shown, shown->picture.usual_min, least),
                 series_value(shown, shown->picture.usual_max, most));
    bh_html_element(html, "p", "note", text);
}

/* What charts.js needs to write figures as the page does. */
static void
series_put_attributes(struct bh_html *html, const struct shown_series *shown)
{
    const struct bh_unit_scale scale = bh_series_unit_scale(shown->unit, shown->most);
    char number[24];

    bh_html_attr(html, "class", "trend");
    bh_html_attr(html, "data-quantity", shown->quantity);
    snprintf(number, sizeof number, "%" PRIu64, scale.one);
    bh_html_attr(html, "data-one", number);
    bh_html_attr(html, "data-suffix", scale.suffix);
    snprintf(number, sizeof number, "%" PRIu64, shown->picture.top);
    bh_html_attr(html, "data-top", number);
}

static void
series_put_figure(struct bh_html *html, struct shown_series *shown)
{
    char least[VALUE_SIZE], most[VALUE_SIZE], title[TITLE_MAX];

    snprintf(title, sizeof title, "%s over time: %s to %s", shown->title,
             series_value(shown, shown->least, least), series_value(shown, shown->most, most));
    shown->picture.title = title;
    bh_html_open(html, "figure");
    series_put_attributes(html, shown);
    series_put_caption(html, shown);
    bh_svg_put_series(html, &shown->picture);
    series_put_range(html, shown);
    bh_html_close(html, "figure");
}

static void
series_put_axis(struct bh_html *html, const struct shown_time *time)
{
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note axis");
    bh_html_open(html, "span");
    bh_html_text(html, "since ");
    bh_show_time(html, time->since_ns);
    bh_html_close(html, "span");
    bh_html_open(html, "span");
    bh_html_text(html, "line: the mean of each ");
    bh_show_span(html, time->step_ns);
    bh_html_text(html, "; band: least to most");
    bh_html_close(html, "span");
    bh_html_close(html, "p");
}

/* ---- the table ---- */

/* The points of steps from `first` to below `end` as one: false where there are none. */
static bool
series_merge(const struct shown_series *shown, uint32_t first, uint32_t end, struct bh_svg_point *ret)
{
    uint64_t sum = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < shown->picture.count; i++) {
        const struct bh_svg_point *point = &shown->points[i];

        if (point->step < first || point->step >= end)
            continue;
        ret->min = count == 0 || point->min < ret->min ? point->min : ret->min;
        ret->max = count == 0 || point->max > ret->max ? point->max : ret->max;
        sum += point->mean;
        count++;
    }
    ret->mean = count ? sum / count : 0;
    return count > 0;
}

static void
series_put_cell(struct bh_html *html, const struct shown_series *shown, uint32_t first, uint32_t end)
{
    char mean[VALUE_SIZE], least[VALUE_SIZE], most[VALUE_SIZE], text[TITLE_MAX];
    struct bh_svg_point point = { .step = first };

    if (!series_merge(shown, first, end, &point)) {
        bh_show_cell(html, "no sample");
        return;
    }
    snprintf(text, sizeof text, "%s (%s to %s)", series_value(shown, point.mean, mean),
             series_value(shown, point.min, least), series_value(shown, point.max, most));
    bh_show_cell(html, text);
}

static void
series_put_table(struct bh_html *html, const struct shown_series *shown, uint32_t count,
                 const struct shown_time *time)
{
    const char *columns[SERIES_MAX + 2] = { "From" };
    uint32_t steps = (time->steps + TABLE_ROWS - 1) / TABLE_ROWS;

    for (uint32_t i = 0; i < count; i++)
        columns[i + 1] = shown[i].title;
    bh_html_open(html, "details");
    bh_html_element(html, "summary", NULL, "The same as a table");
    bh_show_table(html, "Mean, and least to most", columns);
    for (uint32_t first = 0; first < time->steps; first += steps) {
        bh_html_open(html, "tr");
        bh_html_open(html, "td");
        bh_show_time(html, time->since_ns + first * time->step_ns);
        bh_html_close(html, "td");
        for (uint32_t i = 0; i < count; i++)
            series_put_cell(html, &shown[i], first, first + steps);
        bh_html_close(html, "tr");
    }
    bh_show_table_end(html);
    bh_html_close(html, "details");
}

/* ---- all of it ---- */

/* What has a name and no samples: not every board has every sensor. */
static void
series_put_absent(struct bh_html *html, bh_json_value items)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = 4096 };

    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value series = bh_json_at(items, i);

        if (bh_json_count(bh_json_get(series, "points")) > 0)
            continue;
        bh_buf_puts(&text, text.length ? ", " : "no samples of that time: ");
        bh_buf_puts(&text, bh_show_text_of(series, "title"));
    }
    if (text.length == 0 || !bh_buf_text(&text))
        return;
    bh_html_open(html, "p");
    bh_show_unavailable(html, bh_buf_text(&text));
    bh_html_close(html, "p");
}

static void
series_put_figures(struct bh_html *html, struct shown_series *shown, uint32_t count,
                   const struct shown_time *time)
{
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "trends");
    for (uint32_t i = 0; i < count; i++)
        series_put_figure(html, &shown[i]);
    bh_html_close(html, "div");
    series_put_axis(html, time);
}

void
bh_panel_series(struct bh_html *html, const struct bh_panel_call *call)
{
    const struct shown_time time = series_read_time(call->data);
    bh_json_value items = bh_json_get(call->data, "items");
    struct shown_series *shown = bh_arena_alloc(call->page->request->arena, SERIES_MAX * sizeof *shown);
    uint32_t count = 0;

    series_put_spans(html, call);
    for (size_t i = 0; shown && i < bh_json_count(items) && count < SERIES_MAX; i++) {
        series_read(&shown[count], bh_json_at(items, i), &time);
        count += shown[count].picture.count > 0;
    }
    if (count == 0) {
        bh_html_element(html, "p", NULL,
                        "There are no samples of that time. They come every few seconds while the node is "
                        "connected, of a job while it runs.");
        return;
    }
    series_put_figures(html, shown, count, &time);
    series_put_absent(html, items);
    series_put_table(html, shown, count, &time);
}
