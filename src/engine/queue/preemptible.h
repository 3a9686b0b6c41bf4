#ifndef BH_ENGINE_QUEUE_PREEMPTIBLE_H
#define BH_ENGINE_QUEUE_PREEMPTIBLE_H

#include "engine/state/state_internal.h"

/* Jobs that may be preempted, by tenant: those that hold leases and whose contract is not never.  An index of
 * the rows, in the hints: victims are found without a pass over all other jobs.  A tenant's own jobs are in
 * the order in which their first member last began or resumed; one that has not begun counts from when it was
 * placed. */

/* The job's (slot) first lease was made, or is about to be forgotten. */
void bh_preemptible_add(struct bh_engine *engine, uint32_t job);
void bh_preemptible_remove(struct bh_engine *engine, uint32_t job);

/* One of the job's members begins to run; before that shows in its lease. */
void bh_preemptible_runs(struct bh_engine *engine, uint32_t job);

/* The tenant's (slot) own first job, and the next of the same tenant; 0: none. */
uint32_t bh_preemptible_first(const struct bh_engine *engine, uint32_t tenant);
uint32_t bh_preemptible_next(const struct bh_engine *engine, uint32_t job);

/* All members of the job began to run at that time or later. */
uint64_t bh_preemptible_since_ns(const struct bh_engine *engine, uint32_t job);

/* Whether the tenant's list is what it should be: its jobs that may make way, `jobs` of them,
 * in order, none of whose members began before it says. */
bool bh_preemptible_check(const struct bh_engine *engine, uint32_t tenant, uint32_t jobs);

/* Take the index over from another block with the same rows. */
void bh_preemptible_copy(struct bh_engine *engine, const struct bh_engine *from);

#endif
