#ifndef BH_ENGINE_QUEUE_LEASE_H
#define BH_ENGINE_QUEUE_LEASE_H

#include "engine/state/work_internal.h"

/* A lease's life, as a table of (state, event).  Pairs that are not in the table are
 * refused; late answers to what is no longer wanted are in it and change nothing. */
enum lease_event {
    LEASE_READY, /* all partitions of its gang are carved */
    LEASE_CARVE_FAILED,
    LEASE_STARTED,
    LEASE_START_FAILED,
    LEASE_SUSPEND, /* make way: freeze */
    LEASE_SUSPENDED_OK,
    LEASE_SUSPEND_FAILED, /* or it keeps the GPU */
    LEASE_RESUME,         /* its old places are its own again */
    LEASE_RESUMED,
    LEASE_RESUME_FAILED,
    LEASE_STOP,
    LEASE_ENDED, /* its processes are gone */
    LEASE_EVENTS
};

/* What comes with the event. */
struct lease_change {
    enum lease_event event;
    enum bh_end_cause cause;          /* STOP, ENDED */
    int32_t exit_status;              /* ENDED */
    bool unasked;                     /* ENDED: by itself, before a stop reached it */
    bool completed;                   /* ENDED: and its command was done */
    uint64_t at_ns;                   /* STARTED, ENDED: when, where that was before now; 0: now */
    uint64_t for_job;                 /* SUSPEND, STOP: id of the job that needs the capacity, or 0 */
    bool at_once;                     /* STOP: one that stops already is ordered again, because its job's
                                       * grace is over */
    uint32_t gpu;                     /* CARVE_FAILED: id */
    bool elsewhere, refused, scratch; /* START_FAILED, ENDED: as in their events */
};

bool bh_lease_allows(const struct bh_engine *engine, uint32_t lease, enum lease_event event);

/* Take a pair that is allowed. */
void bh_lease_step(struct work *work, uint32_t lease, const struct lease_change *change);

/* Whether every member of the job (slot) that is not done may take the event. */
bool bh_lease_all_allow(const struct bh_engine *engine, uint32_t job, enum lease_event event);

/* SUSPEND or STOP, taken by every member that is not done. */
void bh_lease_step_all(struct work *work, uint32_t job, const struct lease_change *change);

/* The barrier: all continue (READY) once no partition of any is being carved. */
void bh_lease_proceed(struct work *work, uint32_t job);

/* Whether that cause queues the job again when no lease of it is left, unless its contract is
 * NEVER. */
bool bh_lease_queues_again(const struct job *job, enum bh_end_cause cause);

/* A member's lease, in CARVING, for a job (slot) on a node (slot); partitions follow. */
uint32_t bh_lease_create(struct work *work, const struct bh_decision *decision, uint32_t job, uint32_t node);

/* Give the lease a partition: carve it, or lend an idle one. */
void bh_lease_add_partition(struct work *work, uint32_t lease, uint32_t at,
                            const struct bh_partition *decided);

#endif
