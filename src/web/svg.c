#include "web/svg.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"

/* In units of the view box: the GPU is 160 wide, its memory 28 high, its compute slices below 6. */
enum {
    WIDE = 160,
    MEMORY_HIGH = 28,
    GAP = 2,
    COMPUTE_HIGH = 6,
    LETTER_WIDE = 6,
    BAR_HIGH = 10,
    LABEL_LEAST = 6,
    CLASS_MAX = 64,
    GRID_MAX = 256
};

static void
svg_attr(struct bh_html *html, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    bh_html_attr(html, name, text);
}

/* `role`: "img" has no parts for screen readers, "group" has. */
static void
svg_open(struct bh_html *html, const char *role, const char *class, const uint32_t size[2], const char *title)
{
    char box[48];

    snprintf(box, sizeof box, "0 0 %u %u", size[0], size[1]);
    bh_html_open(html, "svg");
    bh_html_attr(html, "class", class);
    bh_html_attr(html, "viewbox", box);
    bh_html_attr(html, "role", role);
    bh_html_attr(html, "aria-label", title);
}

/* One without width is not there. */
static void
svg_put_rect(struct bh_html *html, const char *class, const uint32_t box[4])
{
    static const char *const names[] = { "x", "y", "width", "height" };

    if (box[2] == 0)
        return;
    bh_html_open(html, "rect");
    bh_html_attr(html, "class", class);
    for (size_t i = 0; i < BH_COUNT(names); i++)
        svg_attr(html, names[i], box[i]);
    bh_html_close(html, "rect");
}

/* A label that fits, cut at its end. */
static void
svg_put_label(struct bh_html *html, const char *label, uint32_t wide)
{
    char text[32];
    uint32_t room = wide / LETTER_WIDE;

    if (room < strlen(label) && room < LABEL_LEAST)
        return;
    snprintf(text, sizeof text, "%.*s", (int)(room < sizeof text - 1 ? room : sizeof text - 1), label);
    bh_html_open(html, "text");
    svg_attr(html, "x", wide / 2);
    svg_attr(html, "y", MEMORY_HIGH / 2 + 4);
    bh_html_text(html, text);
    bh_html_close(html, "text");
}

/* The partition's memory where it lies, and under it as many compute slices as it has. */
static void
svg_put_partition(struct bh_html *html, const struct bh_svg_gpu *gpu,
                  const struct bh_svg_partition *partition)
{
    uint32_t unit = WIDE / (gpu->units ? gpu->units : 1), slice = WIDE / (gpu->slices ? gpu->slices : 1);
    uint32_t x = partition->start * unit, wide = partition->units * unit;
    uint32_t compute = partition->slices * slice;
    const char *element = partition->job ? "a" : "g";
    char class[CLASS_MAX], address[32], place[32];

    snprintf(class, sizeof class, "partition %.20s t%u", partition->state, partition->hue % BH_SVG_HUES);
    snprintf(address, sizeof address, "/jobs/%llu", (unsigned long long)partition->job);
    snprintf(place, sizeof place, "translate(%u)", x);
    bh_html_open(html, element);
    bh_html_attr(html, "class", class);
    if (partition->job)
        bh_html_attr(html, "href", address);
    if (x > 0)
        bh_html_attr(html, "transform", place);
    bh_html_element(html, "title", NULL, partition->title);
    svg_put_rect(html, "memory", (const uint32_t[4]){ 1, 1, wide - 2, MEMORY_HIGH - 2 });
    svg_put_rect(
        html, "compute",
        (const uint32_t[4]){ 1, MEMORY_HIGH + GAP, compute < wide ? compute : wide - 2, COMPUTE_HIGH });
    svg_put_label(html, partition->label, wide);
    bh_html_close(html, element);
}

/* Where the memory slices of an empty board lie: one path, as pages have many boards. */
static void
svg_put_grid(struct bh_html *html, uint32_t units)
{
    char lines[GRID_MAX] = "";
    size_t used = 0;

    for (uint32_t i = 1; i < units && used + 16 < sizeof lines; i++)
        used += (size_t)snprintf(lines + used, sizeof lines - used, "M%u 4v%d", i * (WIDE / units),
                                 MEMORY_HIGH - 8);
    bh_html_open(html, "path");
    bh_html_attr(html, "class", "grid");
    bh_html_attr(html, "d", lines);
    bh_html_close(html, "path");
}

void
bh_svg_put_gpu(struct bh_html *html, const struct bh_svg_gpu *gpu)
{
    const uint32_t size[2] = { WIDE, MEMORY_HIGH + GAP + COMPUTE_HIGH };

    svg_open(html, "group",
             gpu->fenced     ? "gpu fenced"
             : gpu->cordoned ? "gpu cordoned"
                             : "gpu",
             size, gpu->title);
    svg_put_rect(html, "board", (const uint32_t[4]){ 0, 0, WIDE, MEMORY_HIGH });
    svg_put_grid(html, gpu->units);
    for (uint32_t i = 0; i < gpu->partition_count; i++)
        svg_put_partition(html, gpu, &gpu->partitions[i]);
    bh_html_close(html, "svg");
}

/* A bar takes the size that the sheet gives it. */
static void
svg_open_bar(struct bh_html *html, const char *class, const char *title)
{
    svg_open(html, "img", class, (const uint32_t[2]){ WIDE, BAR_HIGH }, title);
    bh_html_attr(html, "preserveaspectratio", "none");
}

static uint32_t
svg_bar_length(uint64_t amount, uint64_t whole)
{
    uint64_t length = whole ? amount * WIDE / whole : 0;

    return length < WIDE ? (uint32_t)length : WIDE;
}

void
bh_svg_put_bar(struct bh_html *html, const struct bh_svg_bar *bar)
{
    uint32_t used = svg_bar_length(bar->used, bar->whole);
    uint32_t guarantee = svg_bar_length(bar->guarantee, bar->whole);
    uint32_t own = used < guarantee ? used : guarantee;

    svg_open_bar(html, "bar", bar->title);
    svg_put_rect(html, "track", (const uint32_t[4]){ 0, 0, WIDE, BAR_HIGH });
    svg_put_rect(html, "guarantee", (const uint32_t[4]){ 0, 0, guarantee, BAR_HIGH });
    svg_put_rect(html, "own", (const uint32_t[4]){ 0, 2, own, BAR_HIGH - 4 });
    svg_put_rect(html, "borrowed", (const uint32_t[4]){ own, 2, used - own, BAR_HIGH - 4 });
    if (bar->limit != BH_SVG_NO_LIMIT && bar->limit <= bar->whole)
        svg_put_rect(html, "limit",
                     (const uint32_t[4]){ svg_bar_length(bar->limit, bar->whole) - 1, 0, 1, BAR_HIGH });
    bh_html_close(html, "svg");
}

void
bh_svg_put_stack(struct bh_html *html, const struct bh_svg_stack *stack)
{
    uint64_t before = 0;

    svg_open_bar(html, "bar stack", stack->title);
    svg_put_rect(html, "track", (const uint32_t[4]){ 0, 0, WIDE, BAR_HIGH });
    for (uint32_t i = 0; i < stack->count; i++) {
        uint32_t from = svg_bar_length(before, stack->whole);

        before += stack->segments[i].amount;
        svg_put_rect(html, stack->segments[i].class,
                     (const uint32_t[4]){ from, 0, svg_bar_length(before, stack->whole) - from, BAR_HIGH });
    }
    bh_html_close(html, "svg");
}

/* ---- a course over time ---- */

enum { SERIES_WIDE = 960, SERIES_HIGH = 160, PATH_BYTES_MAX = 128 << 10 };

static uint64_t
svg_series_x(const struct bh_svg_series *series, uint32_t step)
{
    return (uint64_t)step * SERIES_WIDE / series->steps;
}

static uint64_t
svg_series_y(const struct bh_svg_series *series, uint64_t value)
{
    uint64_t fits = value < series->top ? value : series->top;

    return SERIES_HIGH - fits * SERIES_HIGH / series->top;
}

/* How many points from `first` on follow each other without a gap. */
static uint32_t
svg_series_run(const struct bh_svg_series *series, uint32_t first)
{
    uint32_t count = 1;

    while (first + count < series->count
           && series->points[first + count].step == series->points[first].step + count)
        count++;
    return count;
}

/* Along the run's means, to the end of its last step. */
static void
svg_put_line(struct bh_buf *path, const struct bh_svg_series *series, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        bh_buf_printf(path, "%c%llu %llu", i == first ? 'M' : 'L',
                      (unsigned long long)svg_series_x(series, series->points[i].step),
                      (unsigned long long)svg_series_y(series, series->points[i].mean));
    bh_buf_printf(path, "H%llu",
                  (unsigned long long)svg_series_x(series, series->points[first + count - 1].step + 1));
}

/* Along the most and back along the least. */
static void
svg_put_band(struct bh_buf *path, const struct bh_svg_series *series, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        bh_buf_printf(path, "%c%llu %llu", i == first ? 'M' : 'L',
                      (unsigned long long)svg_series_x(series, series->points[i].step),
                      (unsigned long long)svg_series_y(series, series->points[i].max));
    bh_buf_printf(path, "H%llu",
                  (unsigned long long)svg_series_x(series, series->points[first + count - 1].step + 1));
    for (uint32_t i = first + count; i > first; i--)
        bh_buf_printf(path, "L%llu %llu",
                      (unsigned long long)svg_series_x(series, series->points[i - 1].step),
                      (unsigned long long)svg_series_y(series, series->points[i - 1].min));
    bh_buf_putc(path, 'Z');
}

static void
svg_put_runs(struct bh_html *html, const struct bh_svg_series *series, const char *class,
             void (*put)(struct bh_buf *path, const struct bh_svg_series *series, uint32_t first,
                         uint32_t count))
{
    BH_AUTO(bh_buf_fini) struct bh_buf path = { .max = PATH_BYTES_MAX };

    for (uint32_t i = 0, count; i < series->count; i += count) {
        count = svg_series_run(series, i);
        put(&path, series, i, count);
    }
    if (path.length == 0 || !bh_buf_text(&path))
        return;
    bh_html_open(html, "path");
    bh_html_attr(html, "class", class);
    bh_html_attr(html, "d", bh_buf_text(&path));
    bh_html_close(html, "path");
}

void
bh_svg_put_series(struct bh_html *html, const struct bh_svg_series *series)
{
    svg_open(html, "img", "series", (const uint32_t[2]){ SERIES_WIDE, SERIES_HIGH }, series->title);
    bh_html_attr(html, "preserveaspectratio", "none");
    if (series->has_usual) {
        uint32_t high = (uint32_t)svg_series_y(series, series->usual_max);
        uint32_t low = (uint32_t)svg_series_y(series, series->usual_min);

        svg_put_rect(html, "usual", (const uint32_t[4]){ 0, high, SERIES_WIDE, low > high ? low - high : 1 });
    }
    svg_put_runs(html, series, "band", svg_put_band);
    svg_put_runs(html, series, "line", svg_put_line);
    bh_html_close(html, "svg");
}
