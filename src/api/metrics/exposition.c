#include "api/metrics/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

#define TOTAL "_total"

static const struct bh_metric_row rows[BH_METRICS] = {
#define BH_METRIC(id, text, kind, in, whose, exposition_names, what)                                         \
    [BH_METRIC_##id] = { .name = text,                                                                       \
                         .type = BH_METRIC_##kind,                                                           \
                         .unit = in,                                                                         \
                         .sees = BH_METRIC_SEES_##whose,                                                     \
                         .labels = exposition_names,                                                         \
                         .help = what },
#include "tables/metrics.tbl"
#undef BH_METRIC
};

const struct bh_metric_row *
bh_metric_get(enum bh_metric metric)
{
    BH_ASSERT(metric < BH_METRICS);
    return &rows[metric];
}

/* ---- which of the two ---- */

static bool
exposition_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The weight of an entry of Accept in thousandths: "text/plain;q=0.5" is 500. */
static uint32_t
exposition_weight(const char *entry, size_t length)
{
    const char *end = entry + length;
    uint32_t thousandths = 0, step = 1000;

    for (; entry < end; entry++) {
        if (*entry != ';')
            continue;
        do
            entry++;
        while (entry < end && exposition_is_blank(*entry));
        if (end - entry >= 3 && (*entry | 0x20) == 'q' && entry[1] == '=')
            break;
        entry--;
    }
    if (entry >= end)
        return 1000;
    for (entry += 2; entry < end && step > 0; entry++) {
        if (*entry == '.')
            continue;
        if (*entry < '0' || *entry > '9')
            break;
        thousandths += (uint32_t)(*entry - '0') * step;
        step /= 10;
    }
    return thousandths < 1000 ? thousandths : 1000;
}

static bool
exposition_names(const char *entry, size_t length, const char *type)
{
    size_t size = strlen(type);

    return length >= size && strncmp(entry, type, size) == 0
           && (length == size || entry[size] == ';' || exposition_is_blank(entry[size]));
}

bool
bh_exposition_wants_open_metrics(const char *accept)
{
    uint32_t open_metrics = 0, text = 0;

    while (accept && *accept) {
        size_t length = strcspn(accept, ",");
        size_t blanks = strspn(accept, " \t");
        const char *entry = accept + (blanks < length ? blanks : length);
        size_t rest = length - (size_t)(entry - accept);
        uint32_t here = exposition_weight(entry, rest);

        if (exposition_names(entry, rest, "application/openmetrics-text") && here > open_metrics)
            open_metrics = here;
        if (exposition_names(entry, rest, "text/plain") && here > text)
            text = here;
        accept += length + (accept[length] == ',');
    }
    return open_metrics > 0 && open_metrics >= text;
}

const char *
bh_exposition_content_type(bool open_metrics)
{
    return open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                        : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- a family ---- */

static bool
exposition_ends_in(const char *name, size_t length, const char *end)
{
    size_t size = strlen(end);

    return length > size && memcmp(name + length - size, end, size) == 0;
}

/* OpenMetrics names families without what it appends to their series. */
static size_t
exposition_family_length(const struct bh_exposition *x, const struct bh_metric_row *row)
{
    size_t length = strlen(row->name);

    if (x->open_metrics && row->type == BH_METRIC_COUNTER && exposition_ends_in(row->name, length, TOTAL))
        return length - strlen(TOTAL);
    if (x->open_metrics && row->type == BH_METRIC_INFO)
        return length - strlen("_info");
    return length;
}

/* Text has no INFO, and OpenMetrics no counter of another name than _total. */
static const char *
exposition_type_name(const struct bh_exposition *x, const struct bh_metric_row *row)
{
    static const char *const type_names[BH_METRIC_TYPES] = {
        [BH_METRIC_GAUGE] = "gauge",
        [BH_METRIC_COUNTER] = "counter",
        [BH_METRIC_HISTOGRAM] = "histogram",
        [BH_METRIC_INFO] = "info",
    };

    if (row->type == BH_METRIC_INFO && !x->open_metrics)
        return "gauge";
    if (row->type == BH_METRIC_COUNTER && x->open_metrics
        && !exposition_ends_in(row->name, strlen(row->name), TOTAL))
        return "unknown";
    return type_names[row->type];
}

static void
exposition_put_escaped(struct bh_buf *out, const char *text, bool quotes)
{
    for (; *text; text++)
        if (*text == '\n')
            bh_buf_puts(out, "\\n");
        else if (*text == '\\' || (quotes && *text == '"'))
            bh_buf_printf(out, "\\%c", *text);
        else
            bh_buf_putc(out, *text);
}

static void
exposition_begin(struct bh_exposition *x)
{
    const struct bh_metric_row *row = bh_metric_get(x->metric);
    int length = (int)exposition_family_length(x, row);

    if (x->begun)
        return;
    x->begun = true;
    bh_buf_printf(x->out, "# HELP %.*s ", length, row->name);
    exposition_put_escaped(x->out, row->help, x->open_metrics);
    bh_buf_printf(x->out, "\n# TYPE %.*s %s\n", length, row->name, exposition_type_name(x, row));
    if (x->open_metrics && row->unit[0] && exposition_ends_in(row->name, (size_t)length, row->unit))
        bh_buf_printf(x->out, "# UNIT %.*s %s\n", length, row->name, row->unit);
}

void
bh_exposition_family(struct bh_exposition *x, enum bh_metric metric)
{
    BH_ASSERT(metric < BH_METRICS && (!x->begun || metric > x->metric));
    x->metric = metric;
    x->begun = false;
}

/* ---- a series ---- */

/* Boards of before the middle of 2026 look for Hostname. */
static void
exposition_put_label(struct bh_exposition *x, const char *label, size_t length)
{
    static const char host[] = "hostname";

    if (x->host_label && length == sizeof host - 1 && memcmp(label, host, length) == 0)
        bh_buf_puts(x->out, x->host_label);
    else
        bh_buf_put(x->out, label, length);
}

static void
exposition_put_name(struct bh_exposition *x, const char *const *values)
{
    const struct bh_metric_row *row = bh_metric_get(x->metric);
    const char *label = row->labels;
    char before = '{';

    exposition_begin(x);
    bh_buf_puts(x->out, row->name);
    for (uint32_t i = 0; *label; i++) {
        size_t length = strcspn(label, " ");

        BH_ASSERT(i < BH_METRIC_LABELS_MAX && values);
        if (values[i] && values[i][0]) {
            bh_buf_putc(x->out, before);
            exposition_put_label(x, label, length);
            bh_buf_puts(x->out, "=\"");
            exposition_put_escaped(x->out, values[i], true);
            bh_buf_putc(x->out, '"');
            before = ',';
        }
        label += length + (label[length] == ' ');
    }
    if (before == ',')
        bh_buf_putc(x->out, '}');
    bh_buf_putc(x->out, ' ');
}

void
bh_exposition_u64(struct bh_exposition *x, const char *const *values, uint64_t number)
{
    exposition_put_name(x, values);
    bh_buf_put_u64(x->out, number);
    bh_buf_putc(x->out, '\n');
}

/* "12.05", "3.0": at least one digit behind the point, as OpenMetrics writes bounds. */
static void
exposition_put_fraction(struct bh_buf *out, bh_part_ns number, uint32_t digits)
{
    char whole[40];
    bh_part_ns unit = 1;

    for (uint32_t i = 0; i < digits; i++)
        unit *= 10;
    bh_part_ns_format(number / unit, whole);
    bh_buf_printf(out, "%s.", whole);
    number %= unit;
    do {
        unit /= 10;
        bh_buf_putc(out, (char)('0' + (int)(number / unit)));
        number %= unit;
    } while (number > 0);
}

void
bh_exposition_nano(struct bh_exposition *x, const char *const *values, bh_part_ns nanos)
{
    exposition_put_name(x, values);
    exposition_put_fraction(x->out, nanos, 9);
    bh_buf_putc(x->out, '\n');
}

void
bh_exposition_milli(struct bh_exposition *x, const char *const *values, uint64_t millis)
{
    exposition_put_name(x, values);
    exposition_put_fraction(x->out, millis, 3);
    bh_buf_putc(x->out, '\n');
}

void
bh_exposition_put_histogram(struct bh_exposition *x, const struct bh_exposition_histogram *histogram)
{
    const char *name = bh_metric_get(x->metric)->name;
    uint64_t count = 0;

    exposition_begin(x);
    for (uint32_t i = 0; i < histogram->bound_count; i++) {
        count += histogram->counts[i];
        bh_buf_printf(x->out, "%s_bucket{le=\"", name);
        exposition_put_fraction(x->out, histogram->bounds_ns[i], 9);
        bh_buf_printf(x->out, "\"} %" PRIu64 "\n", count);
    }
    count += histogram->counts[histogram->bound_count];
    bh_buf_printf(x->out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", name, count, name);
    exposition_put_fraction(x->out, histogram->sum_ns, 9);
    bh_buf_printf(x->out, "\n%s_count %" PRIu64 "\n", name, count);
}

void
bh_exposition_end(struct bh_exposition *x)
{
    if (x->open_metrics)
        bh_buf_puts(x->out, "# EOF\n");
}
