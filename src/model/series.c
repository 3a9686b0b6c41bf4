#include "model/series.h"

#include <string.h>

#include "base/assert.h"
#include "model/geometry.h"

#define SECOND UINT64_C(1000000000)

const struct bh_series_facts bh_series_rows[BH_SERIES_ROWS] = {
#define BH_SERIES(kind, id, name, unit, title)                                                               \
    [BH_SERIES_##id] = { BH_SERIES_KIND_##kind, name, BH_UNIT_##unit, title },
#include "tables/series.tbl"
#undef BH_SERIES
};

const char *const bh_series_kind_names[BH_SERIES_KINDS] = { "gpu", "node", "job", "tenant", "site" };

const char *const bh_series_unit_names[BH_UNITS] = { "celsius",   "milliwatts", "mib",  "basis_points",
                                                     "millicpus", "gpu_parts",  "count" };

const struct bh_resolution_facts bh_resolutions[BH_RESOLUTIONS] = {
    [BH_RESOLUTION_FINE] = { 10 * SECOND, 3600 * SECOND },
    [BH_RESOLUTION_MEDIUM] = { 60 * SECOND, 24 * 3600 * SECOND },
    [BH_RESOLUTION_COARSE] = { 900 * SECOND, 0 },
};

uint32_t
bh_series_position(enum bh_series_row row)
{
    uint32_t position = 0;

    BH_ASSERT(row < BH_SERIES_ROWS);
    while (row - position > 0 && bh_series_rows[row - position - 1].kind == bh_series_rows[row].kind)
        position++;
    BH_ASSERT(position < BH_SERIES_A_KIND_MAX);
    return position;
}

enum bh_series_row
bh_series_find(enum bh_series_kind kind, const char *name)
{
    enum bh_series_row row = 0;

    while (row < BH_SERIES_ROWS
           && (bh_series_rows[row].kind != kind || strcmp(bh_series_rows[row].name, name) != 0))
        row++;
    return row;
}

enum bh_series_unit
bh_series_unit_find(const char *name)
{
    enum bh_series_unit unit = 0;

    while (unit < BH_UNITS && strcmp(bh_series_unit_names[unit], name) != 0)
        unit++;
    return unit;
}

/* How a unit is shown: divided, with so many decimals, and from `next` on as the next row says. */
static const struct unit_shown {
    uint64_t one, next;
    uint32_t decimals;
    const char *suffix;
} units_shown[BH_UNITS][2] = {
    [BH_UNIT_CELSIUS] = { { 1, UINT64_MAX, 0, " \302\260C" } },
    [BH_UNIT_MILLIWATTS] = { { 1000, 10000000, 1, " W" }, { 1000000, UINT64_MAX, 1, " kW" } },
    [BH_UNIT_MIB] = { { 1, 1024, 0, " MiB" }, { 1024, UINT64_MAX, 1, " GiB" } },
    [BH_UNIT_BASIS_POINTS] = { { 100, UINT64_MAX, 1, " %" } },
    [BH_UNIT_MILLI] = { { 1000, UINT64_MAX, 2, " CPUs" } },
    [BH_UNIT_PARTS] = { { BH_GPU_PARTS, UINT64_MAX, 2, " GPUs" } },
    [BH_UNIT_COUNT] = { { 1, UINT64_MAX, 0, "" } },
};

static const struct unit_shown *
series_unit_shown(enum bh_series_unit unit, uint64_t value)
{
    const struct unit_shown *shown = units_shown[unit];

    BH_ASSERT(unit < BH_UNITS);
    return shown + (shown[1].one > 0 && value >= shown->next);
}

struct bh_unit_scale
bh_series_unit_scale(enum bh_series_unit unit, uint64_t most)
{
    const struct unit_shown *shown = series_unit_shown(unit, most);

    return (struct bh_unit_scale){ shown->one, shown->suffix };
}

void
bh_series_put_value(struct bh_buf *out, enum bh_series_unit unit, uint64_t value)
{
    const struct unit_shown *shown = series_unit_shown(unit, value);
    uint64_t tens = 1, rest;

    for (uint32_t i = 0; i < shown->decimals; i++)
        tens *= 10;
    rest = (value % shown->one * tens + shown->one / 2) / shown->one; /* may be a whole one */
    bh_buf_put_u64(out, value / shown->one + rest / tens);
    if (shown->decimals > 0)
        bh_buf_putc(out, '.');
    for (tens /= 10; tens > 0; tens /= 10)
        bh_buf_putc(out, (char)('0' + rest / tens % 10));
    bh_buf_puts(out, shown->suffix);
}

/* ---- points ---- */

void
bh_point_add(struct bh_point *point, uint64_t value)
{
    uint32_t fits = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
    const struct bh_point one = { .count = 1, .min = fits, .max = fits, .sum = fits };

    bh_point_merge(point, &one);
}

/* At the bound it stays: 2^32 samples of one interval are none that a node sends. */
static uint32_t
series_add_counts(uint32_t a, uint32_t b)
{
    return a < UINT32_MAX - b ? a + b : UINT32_MAX;
}

void
bh_point_merge(struct bh_point *point, const struct bh_point *other)
{
    if (other->count == 0)
        return;
    if (point->count == 0) {
        *point = *other;
        return;
    }
    point->count = series_add_counts(point->count, other->count);
    point->sum = point->sum < UINT64_MAX - other->sum ? point->sum + other->sum : UINT64_MAX;
    if (other->min < point->min)
        point->min = other->min;
    if (other->max > point->max)
        point->max = other->max;
}

uint32_t
bh_point_mean(const struct bh_point *point)
{
    uint64_t mean = point->count ? point->sum / point->count : 0;

    return mean < point->max ? (uint32_t)mean : point->max;
}

/* ---- resolutions ---- */

uint64_t
bh_series_interval(enum bh_resolution resolution, uint64_t at_ns)
{
    BH_ASSERT(resolution < BH_RESOLUTIONS);
    return at_ns / bh_resolutions[resolution].step_ns;
}

enum bh_resolution
bh_series_resolution_for(uint64_t span_ns)
{
    enum bh_resolution resolution = BH_RESOLUTION_FINE;

    while (resolution < BH_RESOLUTION_COARSE && span_ns > bh_resolutions[resolution].kept_ns)
        resolution++;
    return resolution;
}

/* ---- blocks ---- */

static void
series_put_bytes(uint8_t *at, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(number >> (8 * i));
}

static uint64_t
series_read_bytes(const uint8_t *at, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << (8 * i);
    return number;
}

void
bh_block_get(const uint8_t block[BH_BLOCK_BYTES], uint64_t interval, struct bh_point *ret_point)
{
    const uint8_t *at = block + interval % BH_BLOCK_POINTS * BH_POINT_BYTES;

    *ret_point = (struct bh_point){ .count = (uint32_t)series_read_bytes(at, 4),
                                    .min = (uint32_t)series_read_bytes(at + 4, 4),
                                    .max = (uint32_t)series_read_bytes(at + 8, 4),
                                    .sum = series_read_bytes(at + 12, 8) };
}

void
bh_block_merge(uint8_t block[BH_BLOCK_BYTES], uint64_t interval, const struct bh_point *point)
{
    uint8_t *at = block + interval % BH_BLOCK_POINTS * BH_POINT_BYTES;
    struct bh_point all;

    bh_block_get(block, interval, &all);
    bh_point_merge(&all, point);
    series_put_bytes(at, all.count, 4);
    series_put_bytes(at + 4, all.min, 4);
    series_put_bytes(at + 8, all.max, 4);
    series_put_bytes(at + 12, all.sum, 8);
}

uint64_t
bh_block_oldest(enum bh_resolution resolution, uint64_t now_ns, uint64_t retention_ns)
{
    uint64_t kept = bh_resolutions[resolution].kept_ns;
    uint64_t age = kept == 0 || kept > retention_ns ? retention_ns : kept;

    return now_ns > age ? bh_series_interval(resolution, now_ns - age) / BH_BLOCK_POINTS : 0;
}
