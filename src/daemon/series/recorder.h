#ifndef BH_DAEMON_SERIES_RECORDER_H
#define BH_DAEMON_SERIES_RECORDER_H

#include "api/request/owner.h"
#include "ports/series.h"

/* Keeps series: looks every few seconds, on a thread of its own, and writes what it saw in batches.  It never
 * takes more than a hundredth of one processor for writing: the slower the disk, the larger the batches. What
 * cannot be written is lost, with one line in the log until it can be again. */
struct bh_recorder;

struct bh_recorder_options {
    struct bh_owner owner;
    struct bh_series_store store;
    const char *state_dir; /* whose disk `reserve` bytes of are left free */
    uint64_t reserve;      /* 0: none */
    uint64_t retention_ns; /* of the coarsest resolution */
    uint32_t jobs_max, tenant_jobs_max;
};

/* The options are copied; what they point to outlives the recorder.  Nothing runs until the first tick. */
BH_MUST_USE struct bh_recorder *bh_recorder_new(const struct bh_recorder_options *options);

/* One look, and what is due after it; for a ticker. */
enum { BH_RECORDER_TICK_S = 5 };
void bh_recorder_tick(void *self);

/* The same at a moment of the monotonic clock. */
void bh_recorder_tick_at(struct bh_recorder *recorder, uint64_t monotonic_ns);

/* Write what is not written yet, and end. */
void bh_recorder_free(struct bh_recorder *recorder);

#endif
