#ifndef BH_ENGINE_PREEMPT_PREEMPT_H
#define BH_ENGINE_PREEMPT_PREEMPT_H

#include "engine/placement/placement.h"
#include "engine/state/work_internal.h"

/* Preemption for a job: the cheapest set of victims (engine/preempt/victim.h says which jobs may be asked,
 * and what it costs), shown to be enough by imagining them gone, and all of them needed.  Victims are jobs,
 * each with all its members.
 *
 * The work that jobs would lose changes all the time, so the victims that the search takes first change all
 * the time.  Whether room can be made must not: a candidate that preemption could not help is not tried again
 * before an event.  So room can be made where it can with the jobs first that would lose nothing, and cost
 * decides only which jobs leave. */

/* Whether on every row of the SKU a limit has no room for the need, and would have none even if all jobs left
 * that may be asked: then no search for room is needed.  Only events below the tenant `ret_within` (slot),
 * and time, change that: the work notes it. */
bool bh_preempt_in_vain(struct work *work, const struct bh_need *need, uint32_t *ret_within);

/* For a need that finds no room: a claim on the cheapest room that others can make; its victims are in the
 * work, for bh_preempt_next. */
bool bh_preempt(struct work *work, const struct bh_search *search, const struct bh_need *need,
                struct bh_decision *ret_decision);

/* The same for the suspended gang whose search it is: its old places, and no others. */
bool bh_preempt_to_resume(struct work *work, const struct bh_search *search,
                          struct bh_decision *ret_decision);

/* Whether the job (slot) had others leave as often as it may before a job ends, or something
 * comes from outside. */
bool bh_preempt_spent(const struct bh_engine *engine, uint32_t job);

/* Whether the job (slot) makes no other leave just now, though it may soon: as many wait for room as
 * can, or what it had claimed was taken from it a moment ago. */
bool bh_preempt_pauses(const struct bh_engine *engine, uint32_t job);

/* The decision on the next victim: suspended where bh_victim_suspends and all of it runs, else stopped. */
bool bh_preempt_next(struct work *work, struct bh_decision *ret_decision);

#endif
