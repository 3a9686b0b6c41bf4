#ifndef BH_ENGINE_STATE_GANG_H
#define BH_ENGINE_STATE_GANG_H

#include "engine/state/work_internal.h"

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

/* The job's public state, from those of its members.  And that of one of them. */
void bh_gang_show(struct work *work, uint32_t job);
enum bh_job_state bh_gang_shows(enum lease_state state);

/* The places of the members that are not done, member by member; returns how many. */
uint32_t bh_gang_places(const struct bh_engine *engine, uint32_t job,
                        struct placement ret_places[BH_JOB_PARTITIONS_MAX]);

#endif
