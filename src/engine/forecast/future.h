#ifndef BH_ENGINE_FORECAST_FUTURE_H
#define BH_ENGINE_FORECAST_FUTURE_H

#include "engine/step/engine.h"

/* The engine simulated forward: what happens if all jobs and nodes behave as assumed.
 *
 * A future advances time on an engine and changes it, so it is given a copy, never the live engine.  Every
 * effect succeeds at once, except those of nodes that are down.  A job with a time limit ends at its limit.
 * A batch job without one is assumed to run `assumed_ns`; one that has run longer already, as long again as
 * it has.  Services and interactive jobs without a limit never end, held jobs are never released.  The same
 * copy and options give the same future: there is no clock here, and no memory but what the caller gave. */

#define BH_FUTURE_ASSUMED_NS (UINT64_C(24) * 3600 * 1000000000)
#define BH_FUTURE_HORIZON_NS (UINT64_C(366) * 24 * 3600 * 1000000000)
enum { BH_FUTURE_QUEUE_MAX = 512 };

/* What happens to a job; reported after the step that decided it. */
enum bh_future_event_kind {
    BH_FUTURE_EVENT_STARTS, /* it is placed: bh_view_job says where */
    BH_FUTURE_EVENT_RESUMES,
    BH_FUTURE_EVENT_SUSPENDED, /* for_job needs the room */
    BH_FUTURE_EVENT_REQUEUED,  /* stopped, and queued again if its contract allows */
    BH_FUTURE_EVENT_ENDS,      /* `cause` says how: it is over */
    BH_FUTURE_EVENT_KINDS
};

struct bh_future_event {
    enum bh_future_event_kind kind;
    uint64_t at_ns;
    bh_job_id job, for_job;
    enum bh_end_cause cause;
};

/* Called with each news item, with the engine as it is then; it must not be changed. */
typedef void (*bh_future_notify)(void *self, const struct bh_engine *engine,
                                 const struct bh_future_event *event);

struct bh_future_options {
    uint64_t now_ns;         /* where it begins; not before the engine's last event */
    uint64_t assumed_ns;     /* 0: BH_FUTURE_ASSUMED_NS */
    uint64_t horizon_ns;     /* how far it is played; 0: BH_FUTURE_HORIZON_NS */
    bh_job_id until;         /* done when this job has started; 0: when all that wait have */
    bh_future_notify notify; /* NULL: none */
    void *self;
};

/* Why a run came back. */
enum bh_future_end {
    BH_FUTURE_MORE,    /* the budget is used up: run it again to continue */
    BH_FUTURE_FULL,    /* a table is full: grow the copy, set `engine`, run again */
    BH_FUTURE_DONE,    /* what was waited for has happened */
    BH_FUTURE_QUIET,   /* nothing more will happen */
    BH_FUTURE_HORIZON, /* nothing before the horizon */
    BH_FUTURE_ENDS
};

/* An effect that is to be answered. */
struct bh_future_order {
    enum bh_effect_kind kind;
    uint64_t order, id; /* of the lease or the partition */
};

/* One future under way: in the caller's memory, some 50 KiB. */
struct bh_future {
    struct bh_engine *engine;
    struct bh_future_options options;
    uint64_t begin_ns, now_ns, end_ns, seq;
    uint64_t steps; /* engine steps taken so far */
    bool met;       /* `until` has started */
    bool spilled;   /* the queue was too short: look through the tables */
    uint32_t first, count;
    struct bh_future_order queue[BH_FUTURE_QUEUE_MAX];
    struct bh_step step;
};

/* Begin at the present of `engine`, a copy. */
void bh_future_begin(struct bh_future *future, struct bh_engine *engine,
                     const struct bh_future_options *options);

/* Apply an event now, as a request would.  Results of bh_engine_step; `future->step.verdict` says why it is
 * refused.  Its news are reported. */
BH_MUST_USE bh_rc bh_future_send(struct bh_future *future, const struct bh_event *event);

/* Play on for at most `budget` steps.  With BH_FUTURE_FULL nothing was lost. */
enum bh_future_end bh_future_run(struct bh_future *future, uint32_t budget);

#endif
