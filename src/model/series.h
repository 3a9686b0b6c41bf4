#ifndef BH_MODEL_SERIES_H
#define BH_MODEL_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Samples over time: points of whole numbers in three resolutions, and the blocks in which they are kept
 * (tables/series.tbl, docs/adr/0082). */

enum bh_series_kind {
    BH_SERIES_KIND_GPU,
    BH_SERIES_KIND_NODE,
    BH_SERIES_KIND_JOB,
    BH_SERIES_KIND_TENANT,
    BH_SERIES_KIND_SITE,
    BH_SERIES_KINDS
};

enum bh_series_unit {
    BH_UNIT_CELSIUS,
    BH_UNIT_MILLIWATTS,
    BH_UNIT_MIB,
    BH_UNIT_BASIS_POINTS,
    BH_UNIT_MILLI,
    BH_UNIT_PARTS,
    BH_UNIT_COUNT,
    BH_UNITS
};

/* The rows of tables/series.tbl. */
enum bh_series_row {
#define BH_SERIES(kind, id, name, unit, title) BH_SERIES_##id,
#include "tables/series.tbl"
#undef BH_SERIES
    BH_SERIES_ROWS
};

struct bh_series_facts {
    enum bh_series_kind kind;
    const char *name;
    enum bh_series_unit unit;
    const char *title;
};
extern const struct bh_series_facts bh_series_rows[BH_SERIES_ROWS];
extern const char *const bh_series_kind_names[BH_SERIES_KINDS]; /* "gpu" */
extern const char *const bh_series_unit_names[BH_UNITS];        /* "celsius" */

enum { BH_SERIES_A_KIND_MAX = 8 };

/* The row's position among those of its kind, which the store has. */
uint32_t bh_series_position(enum bh_series_row row);

/* The row of a kind that has the name; BH_SERIES_ROWS: none. */
enum bh_series_row bh_series_find(enum bh_series_kind kind, const char *name);

/* The unit of that name; BH_UNITS: none. */
enum bh_series_unit bh_series_unit_find(const char *name);

/* A value for people: "70.1 W", "9.8 GiB", "12.3 %", "0.50 GPUs". */
void bh_series_put_value(struct bh_buf *out, enum bh_series_unit unit, uint64_t value);

/* What one of the unit is where values reach `most`, and what is written behind it: 1000 and " W". */
struct bh_unit_scale {
    uint64_t one;
    const char *suffix;
};
struct bh_unit_scale bh_series_unit_scale(enum bh_series_unit unit, uint64_t most);

/* ---- points ---- */

/* Samples of one interval; `count` 0: there are none, which is not a sample of 0. */
struct bh_point {
    uint32_t count, min, max;
    uint64_t sum;
};

/* One more sample; what does not fit 32 bits counts as UINT32_MAX. */
void bh_point_add(struct bh_point *point, uint64_t value);

/* All samples of `other` too, as if they had come one by one in any order. */
void bh_point_merge(struct bh_point *point, const struct bh_point *other);

/* The mean, rounded down; 0 of an empty point. */
uint32_t bh_point_mean(const struct bh_point *point);

/* ---- resolutions ---- */

enum bh_resolution {
    BH_RESOLUTION_FINE,   /* 10 s, for an hour */
    BH_RESOLUTION_MEDIUM, /* 1 min, for a day */
    BH_RESOLUTION_COARSE, /* 15 min, as long as series are kept */
    BH_RESOLUTIONS
};

/* Length of an interval, and how long intervals are kept: 0, as a setting says. */
struct bh_resolution_facts {
    uint64_t step_ns, kept_ns;
};
extern const struct bh_resolution_facts bh_resolutions[BH_RESOLUTIONS];

/* The number of the interval that holds a moment. */
uint64_t bh_series_interval(enum bh_resolution resolution, uint64_t at_ns);

/* The finest resolution that still has what was `span_ns` ago. */
enum bh_resolution bh_series_resolution_for(uint64_t span_ns);

/* ---- blocks ---- */

/* Neighboring intervals are stored together: so many to a block, whose number is their first divided by
 * that.  A block is bytes of fixed length in little-endian order. */
enum { BH_BLOCK_POINTS = 32, BH_POINT_BYTES = 20, BH_BLOCK_BYTES = BH_BLOCK_POINTS * BH_POINT_BYTES };

/* The point of an interval in its block. */
void bh_block_get(const uint8_t block[BH_BLOCK_BYTES], uint64_t interval, struct bh_point *ret_point);
void bh_block_merge(uint8_t block[BH_BLOCK_BYTES], uint64_t interval, const struct bh_point *point);

/* The first block that is still kept at a moment. */
uint64_t bh_block_oldest(enum bh_resolution resolution, uint64_t now_ns, uint64_t retention_ns);

#endif
