#include "lab/common/chart.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

/* Sizes in the units of the view box. */
enum {
    WIDTH = 960,
    HEIGHT = 540,
    LEFT = 76,
    RIGHT = 724, /* the legend stands beyond */
    TOP = 52,
    FOOT = 60, /* below the plot */
    LEGEND_ROW = 20,
    COLOURS = 8,
    TICKS = 6, /* about so many */
    POINTS_MAX = 2000,
    NAME_MAX_CHARS = 24, /* in the legend */
    TEXT_MAX_CHARS = 200
};

/* Beyond this no value is drawn: differences of what is left cannot overflow. */
static const double magnitude_max = 1e300;
static const double magnitude_min = 1e-290; /* a smaller span counts as none */

/* Eight colours far apart for most eyes (after Okabe and Ito), each dark enough on white
 * and light enough on near-black; a ninth line takes the first colour with dashes. */
static const char style[] =
    "<style>\n"
    "svg{color-scheme:light dark}text{fill:#1c2128;font:13px system-ui,sans-serif}\n"
    ".p{fill:#fff}.h{font-size:17px;font-weight:600}.e{text-anchor:end}.m{text-anchor:"
    "middle}\n"
    ".g{stroke:#d8dde3}.a{stroke:#1c2128;fill:none}\n"
    ".l{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
    ".c0{stroke:#0060a8}.c1{stroke:#c24a00}.c2{stroke:#00785a}.c3{stroke:#a03070}"
    ".c4{stroke:#8a6a00}.c5{stroke:#1d84b5}.c6{stroke:#5a3fc0}.c7{stroke:#5f6670}\n"
    ".d1{stroke-dasharray:8 5}.d2{stroke-dasharray:2 5}.d3{stroke-dasharray:12 4 2 4}\n"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ed}.p{fill:#14181d}.g{stroke:#363d46}"
    ".a{stroke:#e6e9ed}.c0{stroke:#5ba8f0}.c1{stroke:#ff8a4c}.c2{stroke:#3fcf9f}"
    ".c3{stroke:#f08cc4}.c4{stroke:#e6c229}.c5{stroke:#7fd4f7}.c6{stroke:#b09cff}"
    ".c7{stroke:#aab2bd}}\n"
    "</style>\n";

enum { DASHES = 4 };

/* One axis: values from `low` to `high` at places from `from` to `to`; ticks are the
 * multiples first .. last of `step`. */
struct axis {
    double low, high, step;
    int64_t first, last;
    double from, to;
};

static bool
chart_is_drawable(double value)
{
    return value >= -magnitude_max && value <= magnitude_max; /* and no NaN */
}

static double
chart_axis_place(const struct axis *axis, double value)
{
    return axis->from + (value - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

/* Both coordinates of a point must be drawable for it to count. */
static void
chart_widen(struct axis *axis, const struct bh_chart_line *line, const double *values, bool *seen)
{
    for (uint32_t i = 0; i < line->count; i++) {
        if (!chart_is_drawable(line->x[i]) || !chart_is_drawable(line->y[i]))
            continue;
        if (!*seen || values[i] < axis->low)
            axis->low = values[i];
        if (!*seen || values[i] > axis->high)
            axis->high = values[i];
        *seen = true;
    }
}

/* The least of 1, 2, 5 times a power of ten that is not below `span` / TICKS. */
static double
chart_round_step(double span)
{
    double least = span / TICKS, power = 1;

    while (power > least)
        power /= 10;
    while (power * 10 <= least)
        power *= 10;
    return power >= least       ? power
           : 2 * power >= least ? 2 * power
           : 5 * power >= least ? 5 * power
                                : 10 * power;
}

static int64_t
chart_round_down(double value)
{
    int64_t whole = (int64_t)value;

    return (double)whole > value ? whole - 1 : whole;
}

/* Equal values, and values whose difference drowns in their size, get room. */
static void
chart_part_limits(struct axis *axis)
{
    double size = axis->high > -axis->low ? axis->high : -axis->low;

    if (axis->high - axis->low > size * 1e-9 && axis->high - axis->low > magnitude_min)
        return;
    size = size > magnitude_min ? size * 0.1 : 1;
    axis->low -= size;
    axis->high += size;
}

static struct axis
chart_axis_of_x(const struct bh_chart *chart)
{
    struct axis axis = { .low = 0, .high = 1, .from = LEFT, .to = RIGHT };
    bool seen = false;

    for (uint32_t i = 0; i < chart->line_count; i++)
        chart_widen(&axis, &chart->lines[i], chart->lines[i].x, &seen);
    chart_part_limits(&axis);
    axis.step = chart_round_step(axis.high - axis.low);
    axis.first = -chart_round_down(-axis.low / axis.step);
    axis.last = chart_round_down(axis.high / axis.step);
    return axis;
}

/* Ends on ticks, and starts at 0 unless all values stand in the upper half. */
static struct axis
chart_axis_of_y(const struct bh_chart *chart, double bottom)
{
    struct axis axis = { .low = 0, .high = 1, .from = bottom, .to = TOP };
    bool seen = false;

    for (uint32_t i = 0; i < chart->line_count; i++)
        chart_widen(&axis, &chart->lines[i], chart->lines[i].y, &seen);
    if (axis.low > 0 && axis.low <= axis.high / 2)
        axis.low = 0;
    chart_part_limits(&axis);
    axis.step = chart_round_step(axis.high - axis.low);
    axis.first = chart_round_down(axis.low / axis.step);
    axis.last = -chart_round_down(-axis.high / axis.step);
    axis.low = (double)axis.first * axis.step;
    axis.high = (double)axis.last * axis.step;
    return axis;
}

/* One character of UTF-8 as XML text; what XML forbids becomes a question mark. */
static void
chart_put_char(FILE *out, const char *bytes, size_t length)
{
    unsigned char c = (unsigned char)*bytes;

    if (length > 1 && (memcmp(bytes, "\xef\xbf\xbe", 3) == 0 || memcmp(bytes, "\xef\xbf\xbf", 3) == 0))
        putc('?', out);
    else if (length > 1)
        fwrite(bytes, 1, length, out);
    else if (c == '&')
        fputs("&amp;", out);
    else if (c == '<')
        fputs("&lt;", out);
    else if (c == '>')
        fputs("&gt;", out);
    else
        putc(length == 0 || c < 0x20 || c == 0x7f ? '?' : c, out);
}

/* At most `max` characters of `text`; an ellipsis says that there were more. */
static void
chart_put_text(FILE *out, const char *text, uint32_t max)
{
    size_t left = text ? strlen(text) : 0;

    for (uint32_t i = 0; left > 0; i++) {
        size_t length = bh_utf8_step(text, left);

        if (i + 1 == max && left > (length ? length : 1)) {
            fputs("\xe2\x80\xa6", out);
            return;
        }
        chart_put_char(out, text, length);
        text += length ? length : 1;
        left -= length ? length : 1;
    }
}

static void
chart_put_label(FILE *out, const char *place, const char *text)
{
    fprintf(out, "<text %s>", place);
    chart_put_text(out, text, TEXT_MAX_CHARS);
    fputs("</text>\n", out);
}

/* Multiples of a step of one digit are short in %.10g: 0.3, not 0.30000000000000004. */
static void
chart_write_x_ticks(FILE *out, const struct axis *axis, double bottom)
{
    for (int64_t i = axis->first; i <= axis->last; i++) {
        double value = (double)i * axis->step, x = chart_axis_place(axis, value);

        fprintf(out, "<path class=\"a\" d=\"M%.1f %.1fv5\"/>", x, bottom);
        fprintf(out, "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%.10g</text>\n", x, bottom + 20, value);
    }
}

static void
chart_write_y_ticks(FILE *out, const struct axis *axis)
{
    for (int64_t i = axis->first; i <= axis->last; i++) {
        double value = (double)i * axis->step, y = chart_axis_place(axis, value);

        fprintf(out, "<path class=\"g\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        fprintf(out, "<text class=\"e\" x=\"%d\" y=\"%.1f\">%.10g</text>\n", LEFT - 8, y + 4, value);
    }
}

/* A path breaks where a value cannot be drawn; `h0` makes a dot of a point alone. */
static void
chart_write_points(FILE *out, const struct bh_chart_line *line, const struct axis *x, const struct axis *y)
{
    uint32_t kept = line->count < POINTS_MAX ? line->count : POINTS_MAX;
    bool down = false;

    for (uint32_t k = 0; k < kept; k++) {
        uint32_t i = kept < 2 ? 0 : (uint32_t)((uint64_t)k * (line->count - 1) / (kept - 1));

        if (!chart_is_drawable(line->x[i]) || !chart_is_drawable(line->y[i])) {
            down = false;
            continue;
        }
        fprintf(out, down ? "L%.1f %.1f" : "M%.1f %.1fh0", chart_axis_place(x, line->x[i]),
                chart_axis_place(y, line->y[i]));
        down = true;
    }
}

static void
chart_write_line(FILE *out, const struct bh_chart *chart, uint32_t at, const struct axis axes[2])
{
    const struct bh_chart_line *line = &chart->lines[at];
    uint32_t colour = at % COLOURS, dashes = at / COLOURS % DASHES;
    uint32_t row = TOP + 10 + at * LEGEND_ROW;

    fprintf(out, "<path class=\"l c%u d%u\" d=\"", colour, dashes);
    chart_write_points(out, line, &axes[0], &axes[1]);
    fputs("\"><title>", out);
    chart_put_text(out, line->name, TEXT_MAX_CHARS);
    fputs("</title></path>\n", out);
    fprintf(out, "<path class=\"l c%u d%u\" d=\"M%d %uh34\"/>", colour, dashes, RIGHT + 20, row);
    fprintf(out, "<text x=\"%d\" y=\"%u\">", RIGHT + 62, row + 4);
    chart_put_text(out, line->name, NAME_MAX_CHARS);
    fputs("</text>\n", out);
}

static void
chart_write_frame(FILE *out, const struct bh_chart *chart, uint32_t height)
{
    char place[96];

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" "
            "width=\"%d\" height=\"%u\" role=\"img\">\n<title>",
            WIDTH, height, WIDTH, height);
    chart_put_text(out, chart->title, TEXT_MAX_CHARS);
    fprintf(out, "</title>\n%s<rect class=\"p\" width=\"%d\" height=\"%u\"/>\n", style, WIDTH, height);
    chart_put_label(out, "class=\"h\" x=\"16\" y=\"28\"", chart->title);
    snprintf(place, sizeof place, "class=\"m\" x=\"%d\" y=\"%u\"", (LEFT + RIGHT) / 2, height - 12);
    chart_put_label(out, place, chart->x_label);
    snprintf(place, sizeof place, "class=\"m\" transform=\"translate(18 %u) rotate(-90)\"",
             (TOP + height - FOOT) / 2);
    chart_put_label(out, place, chart->y_label);
}

void
bh_chart_write(FILE *out, const struct bh_chart *chart)
{
    uint32_t legend = TOP + chart->line_count * LEGEND_ROW + FOOT / 2;
    uint32_t height = legend > HEIGHT ? legend : HEIGHT;
    double bottom = height - FOOT;
    struct axis axes[2] = { chart_axis_of_x(chart), chart_axis_of_y(chart, bottom) };

    chart_write_frame(out, chart, height);
    chart_write_y_ticks(out, &axes[1]);
    chart_write_x_ticks(out, &axes[0], bottom);
    fprintf(out, "<path class=\"a\" d=\"M%d %dV%.1fH%d\"/>\n", LEFT, TOP, bottom, RIGHT);
    for (uint32_t i = 0; i < chart->line_count; i++)
        chart_write_line(out, chart, i, axes);
    fputs("</svg>\n", out);
}

bh_rc
bh_chart_save(const char *path, const struct bh_chart *chart, struct bh_err *err)
{
    FILE *out = fopen(path, "we");
    bool failed;

    if (!out)
        return bh_err_errno(err, "cannot write %s", path);
    bh_chart_write(out, chart);
    failed = ferror(out);
    if (fclose(out) != 0 || failed)
        return bh_err_errno(err, "cannot write %s", path);
    return BH_OK;
}
