#ifndef BH_ENGINE_PREEMPT_MOVE_H
#define BH_ENGINE_PREEMPT_MOVE_H

#include "engine/placement/placement.h"
#include "engine/state/work_internal.h"

/* Moving jobs: which may be moved, what it costs, and carrying out a BH_EV_MOVE.
 *
 * A job is moved by stopping it, keeping room for it elsewhere as a claim, and queueing it again: a suspended
 * job can only resume where it was.  So only jobs are moved that can be stopped:
 *   - its contract is checkpoint; or requeue, and it is a batch job (requeue is what a job
 *     has that says nothing, and a service or a session that says nothing is left alone);
 *   - all its members run, and have for the least time that a tenant above or the site
 *     promises;
 *   - it has no deadline, and its tenant's budget is not spent;
 *   - it was not moved within settings.defrag.rest_ns;
 *   - its class is not above that of the job it is moved for, or normal where it is for none.
 *
 * Costs and gains are GPU-equivalents times time.  A move costs what is lost: everything since the job began
 * (requeue), or its grace (checkpoint); and a minute for starting anew.
 *
 * Moves are counted by the hour, from the first one on: so many jobs, and so much work lost.  A plan says
 * itself what it gains and costs, for the record. */

#define BH_MOVE_RESTART_NS (UINT64_C(60) * 1000000000)
#define BH_MOVE_PERIOD_NS (UINT64_C(3600) * 1000000000)

/* Parts times ns as GPU-equivalents times ms, rounded down. */
uint64_t bh_move_gpu_ms(bh_part_ns amount);

/* The terms of settings.defrag from now on; zeros take the defaults. */
void bh_move_configure(struct bh_engine *engine, const struct bh_defrag *defrag);

/* When the job was last ordered to move, to the next full second; 0: never. */
uint64_t bh_move_last_ns(const struct job *job);

/* Whether the job (slot) may be moved at that time. */
bool bh_move_allowed(const struct bh_engine *engine, uint32_t job, uint64_t now_ns);

/* Whether its class lets it be moved for that job (slot): for one of its class or a higher one;
 * to join room (0), while it is not above normal. */
bool bh_move_yields(const struct bh_engine *engine, uint32_t job, uint32_t for_job);

/* What moving it costs. */
bh_part_ns bh_move_cost(const struct bh_engine *engine, uint32_t job);

/* What is left of this hour: jobs, GPU-ms, and when it ends (0: it has not begun). */
struct bh_move_budget {
    uint64_t moves, lost_gpu_ms, ends_ns;
};
struct bh_move_budget bh_move_left(const struct bh_engine *engine, uint64_t now_ns);

/* Whether the moves can be carried out at that time, just as they are:
 *   BH_RANGE     numbers that are none
 *   BH_CONFLICT  moving is off, no gain worth the cost, over the budget; or a job must not
 *                be moved, is no longer pending, or its placements are taken
 * `ret_why` says which. */
BH_MUST_USE bh_rc bh_move_check(const struct bh_engine *engine, const struct bh_ev_move *move,
                                uint64_t now_ns, struct bh_reason *ret_why);

/* Carry out moves that were checked. */
void bh_move_run(struct work *work, const struct bh_ev_move *move);

/* Whether the job (slot) is on its way: stopping to be moved, or queued again with room
 * kept for it. */
bool bh_move_underway(const struct bh_engine *engine, uint32_t job);

#endif
