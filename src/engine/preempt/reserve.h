#ifndef BH_ENGINE_PREEMPT_RESERVE_H
#define BH_ENGINE_PREEMPT_RESERVE_H

#include "engine/gpu/capacity.h"
#include "engine/queue/queue.h"
#include "engine/state/work_internal.h"

/* Capacity that is kept for jobs that come first and must wait (EASY backfill).
 *
 * The first candidate in order that finds no room, and that no limit holds back, gets a reservation: the
 * placements where it can begin soonest, and the time from which they are free, by the known ends of the
 * leases there (bh_lease_ends_ns).  Jobs that come after it may use them only when they certainly end by
 * then; jobs that come before it may ignore it.  It may begin anywhere as soon as anything fits.
 *
 * One reservation for each GPU model: a job that waits for H100s loses nothing when a later one gets an A30,
 * and each model would otherwise be held up by the queue of the others.  A job that several models can serve
 * has one reservation, on one of them.
 *
 * A gang's reservation has the places of all its members, on as few nodes as possible at the first time that
 * has room for all.
 *
 * A reservation is kept as long as its time lies ahead, its SKU has that form, a limit does not hold the job
 * back, and its places would be free by then and not before; so a promised start is not delayed by later
 * jobs.  Whether it is kept is worked out from the state alone, never from hints. */

/* The search of a candidate for one of its jobs (slot): what is reserved for others stands
 * in its way unless they come after it, or it ends in time. */
struct bh_search bh_reserve_search(const struct bh_engine *engine, const struct bh_queue_entry *entry,
                                   uint32_t job);

/* All reservations, as a set of claims (bit i: claim i). */
uint32_t bh_reserve_set(const struct bh_engine *engine);

/* A walk along the pending jobs, in order; begins zeroed. */
struct bh_walk {
    uint64_t headed; /* bit m: the first for model m was found */
    uint32_t kept;   /* bit i: claim i is the reservation of such a first */
};

/* Decide on the next pending job that could not be placed and that no limit blocks: if it is the first for a
 * model, it has a reservation or gets one.  True: that is the decision. */
bool bh_reserve_decide(struct work *work, struct bh_walk *walk, const struct bh_queue_entry *entry,
                       struct bh_decision *ret_decision);

/* At the end of the walk: the reservation of a job that is not the first for any model is to be given up
 * (true). */
bool bh_reserve_give_up(const struct bh_engine *engine, const struct bh_walk *walk,
                        struct bh_decision *ret_decision);

/* The first time at which a reservation may become invalid without any event: the end of a job that it counts
 * on; UINT64_MAX without reservations. */
uint64_t bh_reserve_until_ns(const struct bh_engine *engine);

/* Whether what is remembered of the node's (slot) leases' ends is true. */
bool bh_reserve_ends_known(const struct bh_engine *engine, uint32_t node);

/* Leases without a time limit are assumed to end at other times than before. */
void bh_reserve_forget_ends(struct bh_engine *engine);

/* The GPU model that a claim's places are of. */
uint32_t bh_reserve_model(const struct bh_engine *engine, const struct claim *claim);

#endif
