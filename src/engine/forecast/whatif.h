#ifndef BH_ENGINE_FORECAST_WHATIF_H
#define BH_ENGINE_FORECAST_WHATIF_H

#include "engine/forecast/future.h"

/* Two futures of one present, compared: what a change would bring about. */

/* What becomes of one job in one future.  Times are 0 where it does not happen. */
struct bh_job_forecast {
    bh_job_id job;
    bh_tenant_id tenant;
    enum bh_job_state state; /* at the beginning */
    uint64_t start_ns;       /* of a job that waits: when it first starts */
    bh_node_id node;         /* where */
    bh_gpu_id gpu;           /* its first one */
    uint64_t out_ns;         /* when it first makes way for another, or loses its GPU */
    bool suspended;          /* frozen then; else it is queued again */
    bh_job_id out_for;
    uint64_t end_ns;
    enum bh_end_cause cause; /* of its end */
};

/* The outlooks of all jobs, in the caller's memory, by ascending id. */
struct bh_job_forecasts {
    struct bh_job_forecast *rows;
    uint32_t count, max;
    uint64_t until_ns; /* how far the future was played */
    bool open;         /* it was cut short: what did not happen still may */
};

/* How many rows an engine's jobs take. */
uint32_t bh_job_forecasts_needed(const struct bh_engine *engine);

/* A row for each job of the engine, with `rows` and `max` set by the caller.  BH_FULL:
 * more than `max`, of which the first are there. */
BH_MUST_USE bh_rc bh_job_forecasts_begin(struct bh_job_forecasts *forecasts, const struct bh_engine *engine);

/* A bh_future_notify; `self` is the outlooks.  A job that was not there at the beginning gets a
 * row where there is room, if it starts. */
void bh_job_forecasts_notify(void *self, const struct bh_engine *engine, const struct bh_future_event *event);

/* The future came back with `end`. */
void bh_job_forecasts_close(struct bh_job_forecasts *forecasts, const struct bh_future *future,
                            enum bh_future_end end);

/* The job's row, or NULL. */
const struct bh_job_forecast *bh_job_forecasts_find(const struct bh_job_forecasts *forecasts, bh_job_id job);

/* The event by which the GPU gets no new work, and is otherwise as it is; jobs on it continue.  False: there
 * is no such GPU. */
bool bh_whatif_drain(const struct bh_engine *engine, bh_gpu_id gpu, struct bh_event *ret_event);

/* What is different for a job. */
enum bh_difference_kind {
    BH_DIFF_CANCELLED, /* it ends, and would not have: cancelled, its tenant removed */
    BH_DIFF_SUSPENDED, /* it makes way, and would not have */
    BH_DIFF_REQUEUED,
    BH_DIFF_NEVER, /* it no longer starts, within the simulated time */
    BH_DIFF_LATER,
    BH_DIFF_EARLIER,
    BH_DIFF_STARTS, /* it starts, and would not have */
    BH_DIFF_SPARED, /* it is no longer preempted */
    BH_DIFF_KINDS
};
extern const char *const bh_difference_names[BH_DIFF_KINDS];

struct bh_difference {
    enum bh_difference_kind kind;
    bh_job_id job, for_job;
    bh_tenant_id tenant;
    uint64_t before_ns, after_ns; /* its start, or when it makes way or ends; 0: not */
};

/* Every job for which `after` differs from `before`, at most one difference each: the one
 * that stands first in the enum.  Starts that differ by less than `least_ns` do not count.
 * Returns how many there are; the first `max` are written. */
uint32_t bh_whatif_compare(const struct bh_job_forecasts *before, const struct bh_job_forecasts *after,
                           uint64_t least_ns, struct bh_difference *ret_differences, uint32_t max);

#endif
