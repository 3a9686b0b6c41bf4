#ifndef BH_PORTS_SERIES_H
#define BH_PORTS_SERIES_H

#include "base/err.h"
#include "model/series.h"

/* Where samples over time are kept.  What it holds may be lost without harm to anything else: it is not part
 * of the store (ports/store.h), no record depends on it, and it is written beside the owner's commits. */

enum { BH_SERIES_NAME_MAX = 200 };

/* What a series is of.  The name is unique within the kind: a GPU's UUID, a job's number.  Of another tenant
 * the same name is another object, which shows nothing of the one before. */
struct bh_series_object {
    enum bh_series_kind kind;
    const char *name; /* 1 to BH_SERIES_NAME_MAX bytes */
    uint32_t tenant_id;
};

/* Samples of an interval of BH_RESOLUTION_FINE, for all resolutions; merged with those that are kept. */
struct bh_series_sample {
    uint32_t object; /* in the batch */
    enum bh_series_row row;
    uint64_t interval;
    struct bh_point point;
};

struct bh_series_batch {
    const struct bh_series_object *objects;
    const struct bh_series_sample *samples; /* grouped by object and row */
    uint32_t object_count, sample_count;
    uint64_t now_ns;
};

/* Points of one series. */
struct bh_series_query {
    struct bh_series_object object;
    enum bh_series_row row;
    enum bh_resolution resolution;
    uint64_t first, last; /* intervals of that resolution, both included */
};

/* What is kept at most. */
struct bh_series_limits {
    uint64_t now_ns, retention_ns;
    uint32_t jobs_max, tenant_jobs_max;
};

/* Called for each interval that has samples, ascending; false stops the walk. */
typedef bool (*bh_series_sink)(void *self, uint64_t interval, const struct bh_point *point);

/* Failures of all: BH_IO, BH_FULL (disk), BH_UNAVAILABLE (locked, or read-only). */
struct bh_series_store_ops {
    /* ---- one thread ---- */
    /* All of it or nothing; kept when the process is killed. */
    bh_rc (*write)(void *self, const struct bh_series_batch *batch, struct bh_err *err);
    /* Drop what is older than the limits say, then of the jobs with most series-holders the oldest. */
    bh_rc (*prune)(void *self, const struct bh_series_limits *limits, struct bh_err *err);

    /* ---- any thread ---- */
    /* Nothing is known of the object: BH_OK, and the sink is not called. */
    bh_rc (*read)(void *self, const struct bh_series_query *query, bh_series_sink sink, void *sink_self,
                  struct bh_err *err);
    void (*close)(void *self);
};

struct bh_series_store {
    const struct bh_series_store_ops *ops; /* NULL: series are not kept */
    void *self;
};

#endif
