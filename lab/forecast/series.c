#include "lab/forecast/series.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/vec.h"
#include "base/num.h"

enum { COLUMNS_MAX = 64, FIELD_MAX = 63, VALUE_MAX = 4000000, PLACES = 3 };

const char *const bh_series_take_names[BH_SERIES_TAKES] = {
    [BH_SERIES_MEAN] = "mean",
    [BH_SERIES_LAST] = "last",
    [BH_SERIES_MAX] = "max",
};

/* One line, its fields as texts. */
struct series_row {
    char text[COLUMNS_MAX * (FIELD_MAX + 1)];
    const char *fields[COLUMNS_MAX];
    uint32_t count;
};

struct series_reader {
    const struct bh_series_source *source;
    struct bh_series series;
    uint32_t line, columns, room;
    uint32_t time, parts[2], part_count; /* columns */
    uint64_t last_s;                     /* of the row before */
    /* the open slot */
    uint64_t slot, sum;
    uint32_t rows, last, max;
    struct series_row row;
    struct bh_err *err;
};

static bh_rc
series_blame(struct series_reader *reader, bh_rc rc, const char *what, const char *field)
{
    return bh_err_set(reader->err, rc, "%s:%u: %s%s%s", reader->source->file, reader->line, field,
                      *field ? ": " : "", what);
}

/* Cut a line at its commas. */
static bh_rc
series_split(struct series_reader *reader, const char *line, size_t length)
{
    struct series_row *row = &reader->row;
    char *at = row->text;

    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (length >= sizeof row->text)
        return series_blame(reader, BH_INVALID, "the line is too long", "");
    if (memchr(line, '\0', length) || memchr(line, '"', length))
        return series_blame(reader, BH_INVALID, "quotes and NULs are not read here", "");
    memcpy(at, line, length);
    at[length] = '\0';
    row->count = 0;
    while (at) {
        if (row->count == COLUMNS_MAX)
            return series_blame(reader, BH_INVALID, "more than 64 fields", "");
        row->fields[row->count++] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = '\0';
    }
    return BH_OK;
}

static bool
series_find_column(const struct series_row *row, const char *name, uint32_t *ret_column)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (strcmp(row->fields[i], name) == 0) {
            *ret_column = i;
            return true;
        }
    return false;
}

static bh_rc
series_read_head(struct series_reader *reader)
{
    const struct series_row *row = &reader->row;

    reader->columns = row->count;
    if (!series_find_column(row, "time", &reader->time))
        return series_blame(reader, BH_INVALID, "there is no column time", "");
    if (series_find_column(row, "value", &reader->parts[0])) {
        reader->part_count = 1;
        return BH_OK;
    }
    if (!series_find_column(row, "running_gpus", &reader->parts[0])
        || !series_find_column(row, "pending_gpus", &reader->parts[1]))
        return series_blame(reader, BH_INVALID,
                            "there is neither a column value nor running_gpus and pending_gpus", "");
    reader->part_count = 2;
    reader->series.gpus = true;
    return BH_OK;
}

/* As many digits as `digits` has; their number. */
static bool
series_read_digits(const char **text, uint32_t digits, int *ret_number)
{
    *ret_number = 0;
    for (uint32_t i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        *ret_number = *ret_number * 10 + (**text - '0');
    }
    return true;
}

/* `tm` and the text agree only when the date exists. */
static bool
series_is_date(const struct tm *tm, time_t seconds)
{
    struct tm back;

    return seconds >= 0 && gmtime_r(&seconds, &back) && back.tm_mday == tm->tm_mday
           && back.tm_mon == tm->tm_mon && back.tm_hour == tm->tm_hour && back.tm_min == tm->tm_min
           && back.tm_sec == tm->tm_sec;
}

/* "2020-05-01 00:10:00", "2020-05-01T00:10Z" */
static bool
series_read_date(const char *text, uint64_t *ret_s)
{
    struct tm tm = { 0 };
    bool read = series_read_digits(&text, 4, &tm.tm_year) && *text++ == '-'
                && series_read_digits(&text, 2, &tm.tm_mon) && *text++ == '-'
                && series_read_digits(&text, 2, &tm.tm_mday) && (*text == ' ' || *text == 'T')
                && (text++, series_read_digits(&text, 2, &tm.tm_hour)) && *text++ == ':'
                && series_read_digits(&text, 2, &tm.tm_min);
    struct tm asked;
    time_t seconds;

    if (!read || (*text == ':' && (text++, !series_read_digits(&text, 2, &tm.tm_sec))))
        return false;
    text += *text == 'Z';
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    asked = tm;
    seconds = timegm(&tm);
    *ret_s = (uint64_t)seconds;
    return *text == '\0' && series_is_date(&asked, seconds);
}

static bh_rc
series_read_time(struct series_reader *reader, uint64_t *ret_s)
{
    const char *text = reader->row.fields[reader->time];
    struct bh_err unused;

    if (!series_read_date(text, ret_s) && bh_parse_u64(text, ret_s, &unused) != BH_OK)
        return series_blame(reader, BH_INVALID, "expected a time, as in 2026-11-20 09:30:00", text);
    if (*ret_s > UINT64_MAX / BH_NS_PER_S)
        return series_blame(reader, BH_RANGE, "the time is too far away", text);
    if (reader->rows + reader->series.count > 0 && *ret_s <= reader->last_s)
        return series_blame(reader, BH_INVALID, "the time does not grow", text);
    return BH_OK;
}

/* A decimal of at most nine digits and three places, in thousandths. */
static bool
series_read_thousandths(const char *text, uint64_t *ret_value)
{
    size_t whole = strspn(text, "0123456789");
    const char *point = text + whole;
    size_t places = *point == '.' ? strspn(point + 1, "0123456789") : 0;
    int digits;

    if (whole == 0 || whole > 9 || places > PLACES || (*point == '.' && places == 0))
        return false;
    series_read_digits(&text, (uint32_t)whole, &digits);
    *ret_value = (uint64_t)digits;
    for (size_t i = 1; i <= PLACES; i++)
        *ret_value = *ret_value * 10 + (uint64_t)(i <= places ? point[i] - '0' : 0);
    return point[places + (places > 0)] == '\0';
}

/* The row's number: the sum of its columns. */
static bh_rc
series_read_value(struct series_reader *reader, uint32_t *ret_value)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < reader->part_count; i++) {
        const char *text = reader->row.fields[reader->parts[i]];
        uint64_t value;

        if (!series_read_thousandths(text, &value))
            return series_blame(reader, BH_INVALID, "expected a number of at most three places", text);
        sum += value;
        if (sum > (uint64_t)VALUE_MAX * BH_SERIES_WHOLE)
            return series_blame(reader, BH_RANGE, "a number may be at most 4,000,000", text);
    }
    *ret_value = (uint32_t)sum;
    return BH_OK;
}

static uint32_t
series_slot_value(const struct series_reader *reader)
{
    switch (reader->source->take) {
    case BH_SERIES_LAST:
        return reader->last;
    case BH_SERIES_MAX:
        return reader->max;
    case BH_SERIES_MEAN:
    case BH_SERIES_TAKES:
        break;
    }
    return (uint32_t)((reader->sum + reader->rows / 2) / reader->rows);
}

/* Put the open slot's value at its place; the slots that were passed over have none. */
static bh_rc
series_close_slot(struct series_reader *reader)
{
    struct bh_series *series = &reader->series;
    uint64_t at;
    bool fits;

    if (series->count == 0)
        series->first = reader->slot;
    at = reader->slot - series->first;
    if (at >= BH_SERIES_SLOTS_MAX)
        return series_blame(reader, BH_RANGE, "more than 1,048,576 slots", "");
    fits = bh_vec_reserve(&series->values, &reader->room, at + 1, BH_SERIES_SLOTS_MAX);
    BH_ASSERT(fits);
    for (uint32_t i = series->count; i < at; i++)
        series->values[i] = BH_SERIES_NONE;
    series->values[at] = series_slot_value(reader);
    series->count = (uint32_t)at + 1;
    reader->sum = 0;
    reader->rows = reader->max = 0;
    return BH_OK;
}

static bh_rc
series_read_row(struct series_reader *reader)
{
    uint64_t seconds, slot;
    uint32_t value;
    bh_rc rc = BH_OK;

    if (reader->row.count != reader->columns)
        return series_blame(reader, BH_INVALID, "the line has not as many fields as the first", "");
    if ((rc = series_read_time(reader, &seconds)) != BH_OK
        || (rc = series_read_value(reader, &value)) != BH_OK)
        return rc;
    slot = seconds * BH_NS_PER_S / reader->source->slot_ns;
    if (reader->rows > 0 && slot != reader->slot)
        rc = series_close_slot(reader);
    reader->slot = slot;
    reader->sum += value;
    reader->last = value;
    reader->max = value > reader->max ? value : reader->max;
    reader->rows++;
    reader->last_s = seconds;
    return rc;
}

static bh_rc
series_read_lines(struct series_reader *reader)
{
    const char *text = reader->source->text, *end = text + reader->source->length;
    bh_rc rc = BH_OK;

    while (text < end && rc == BH_OK) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((stop ? stop : end) - text);

        reader->line++;
        rc = series_split(reader, text, length);
        if (rc == BH_OK)
            rc = reader->line == 1 ? series_read_head(reader) : series_read_row(reader);
        text += length + (stop != NULL);
    }
    if (rc != BH_OK)
        return rc;
    if (reader->rows == 0)
        return series_blame(reader, BH_INVALID, "there are no rows", "");
    return series_close_slot(reader);
}

/* "earth_vc/vc3sl.10min.csv" is vc3sl. */
static void
series_set_name(struct bh_series *series, const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    size_t length = strcspn(name, ".");

    if (length >= sizeof series->name)
        length = sizeof series->name - 1;
    memcpy(series->name, name, length);
    series->name[length] = '\0';
}

bh_rc
bh_series_parse(const struct bh_series_source *source, struct bh_series *ret_series, struct bh_err *err)
{
    struct series_reader reader = { .source = source, .err = err };
    bh_rc rc;

    BH_ASSERT(source->slot_ns > 0 && source->take < BH_SERIES_TAKES);
    series_set_name(&reader.series, source->file);
    reader.series.slot_ns = source->slot_ns;
    rc = series_read_lines(&reader);
    if (rc == BH_OK)
        *ret_series = reader.series;
    else
        bh_series_fini(&reader.series);
    return rc;
}

void
bh_series_fini(struct bh_series *series)
{
    free(series->values);
    series->values = NULL;
    series->count = 0;
}

double
bh_series_mean(const struct bh_series *series)
{
    double sum = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < series->count; i++) {
        if (series->values[i] == BH_SERIES_NONE)
            continue;
        sum += series->values[i];
        count++;
    }
    return count ? sum / count / BH_SERIES_WHOLE : 0;
}
