#ifndef BH_LAB_FORECAST_SERIES_H
#define BH_LAB_FORECAST_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

/* A series of numbers over time, from a file of comma separated values.
 *
 * The first line names the columns.  `time` is "YYYY-MM-DD HH:MM:SS" (or with T, a Z at the
 * end, no seconds; all taken as UTC) or whole seconds since 1970, and grows from line to
 * line.  The number is in `value`, or is the sum of `running_gpus` and `pending_gpus`;
 * other columns are not read.  Numbers are decimals of at most three places up to
 * 4,000,000, without sign, quotes or blanks.  Lines may end in CR LF. */

#define BH_SERIES_NONE UINT32_MAX
enum {
    BH_SERIES_WHOLE = 1000, /* values are thousandths */
    BH_SERIES_SLOTS_MAX = 1 << 20,
    BH_SERIES_FILE_MAX = 64 << 20
};

/* What of the values in a slot becomes the slot's. */
enum bh_series_take { BH_SERIES_MEAN, BH_SERIES_LAST, BH_SERIES_MAX, BH_SERIES_TAKES };
extern const char *const bh_series_take_names[BH_SERIES_TAKES];

struct bh_series {
    char name[64]; /* the file's, up to its first dot */
    bool gpus;     /* from running_gpus and pending_gpus */
    bh_ns slot_ns;
    uint64_t first;   /* time of values[0] divided by slot_ns */
    uint32_t *values; /* thousandths, or BH_SERIES_NONE: nothing in this slot */
    uint32_t count;
};

/* A file's text, and how it is cut into slots. */
struct bh_series_source {
    const char *file; /* for messages and the name */
    const char *text;
    size_t length;
    bh_ns slot_ns; /* > 0 */
    enum bh_series_take take;
};

/* Read a series.  Owned by the caller after BH_OK: bh_series_fini.  `ret_series` is
 * untouched on failure; messages begin with "file:line: ".
 *   BH_INVALID  no columns of that kind, no rows, a field that is no number or no time,
 *               more or fewer fields than columns, time that does not grow
 *   BH_RANGE    a number too large, more than BH_SERIES_SLOTS_MAX slots */
BH_MUST_USE bh_rc bh_series_parse(const struct bh_series_source *source, struct bh_series *ret_series,
                                  struct bh_err *err);
void bh_series_fini(struct bh_series *series);

/* The mean of all slots that have a value, in units (not thousandths). */
double bh_series_mean(const struct bh_series *series);

#endif
