#ifndef BH_ENGINE_QUEUE_GANG_DECIDE_H
#define BH_ENGINE_QUEUE_GANG_DECIDE_H

#include "engine/state/work_internal.h"

/* Decisions on all members of a job, in one record. */

/* Begin to PLACE a pending job, or to CLAIM for it or for a suspended one: the places of
 * all its members; or to RESUME one, with no places. */
void bh_gang_begin(struct work *work, enum bh_decision_kind kind, uint32_t job,
                   const struct placement *placements, uint32_t count);

/* The same to RESERVE the places from a time on. */
void bh_gang_begin_reserve(struct work *work, uint32_t job, const struct placement *placements,
                           uint32_t count, uint64_t at_ns);

/* The decision on the next member; false when there is none. */
bool bh_gang_decide(struct work *work, struct bh_decision *ret_decision);

/* The most effects that clearing and carving these places can cause: a GPU's idle partitions
 * go once.  And what placing or resuming all members that are decided on can. */
uint32_t bh_gang_carving(const struct bh_engine *engine, const struct placement *placements, uint32_t count);
uint32_t bh_gang_effects(const struct work *work);

/* Whether the decision may come now: it is the next of its gang's, or no gang's record was
 * begun.  And that it was applied: it is one of `members`. */
bool bh_gang_follows(const struct work *work, const struct bh_decision *decision);
void bh_gang_decision_applied(struct work *work, const struct bh_decision *decision, uint32_t members);

#endif
