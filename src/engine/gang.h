#ifndef BH_ENGINE_GANG_H
#define BH_ENGINE_GANG_H

#include "engine/lease.h"
#include "engine/quota.h"

/* A job's leases together: one for each member of its gang, chained from job.lease in
 * the order of members, with numbers that follow each other.  They are placed, stopped,
 * suspended and resumed all or none.  A job without a gang is a gang of one. */

/* The next of the job's members (slot) that is not done, or 0; start with 0. */
uint32_t bh_gang_next(const struct bh_engine *engine, uint32_t job, uint32_t lease);

/* How many members are not done. */
uint32_t bh_gang_live(const struct bh_engine *engine, uint32_t job);

/* Whether every member that is not done is in that state, and there is one. */
bool bh_gang_all(const struct bh_engine *engine, uint32_t job, enum lease_state state);

/* Whether the lease stands for a gang that is suspended: the first that is not done. */
bool bh_gang_leads_suspended(const struct bh_engine *engine, uint32_t lease);

/* Whether every member that is not done may take the event. */
bool bh_gang_allows(const struct bh_engine *engine, uint32_t job, enum lease_event event);

/* SUSPEND or STOP, taken by every member that is not done. */
void bh_gang_notify(struct work *work, uint32_t job, const struct lease_change *change);

/* The barrier: all go on (READY) once no partition of any is being carved any more. */
void bh_gang_proceed(struct work *work, uint32_t job);

/* The job's public state, from those of its members.  And that of one of them. */
void bh_gang_show(struct work *work, uint32_t job);
enum bh_job_state bh_gang_shows(enum lease_state state);

/* The places of the members that are not done, member by member; returns how many.  And
 * what they would take when they resume. */
uint32_t bh_gang_places(const struct bh_engine *engine, uint32_t job,
                        struct placement ret_places[BH_JOB_PARTITIONS_MAX]);
struct bh_wanted bh_gang_to_resume(const struct bh_engine *engine, uint32_t job);

/* ---- decisions on all members, in one record ---- */

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
uint32_t bh_gang_carving(const struct bh_engine *engine, const struct placement *placements,
                         uint32_t count);
uint32_t bh_gang_effects(const struct work *work);

/* Whether the decision may come now: it is the next of its gang's, or no gang's record was
 * begun.  And that it was applied: it is one of `members`. */
bool bh_gang_follows(const struct work *work, const struct bh_decision *decision);
void bh_gang_decision_applied(struct work *work, const struct bh_decision *decision, uint32_t members);

#endif
