#ifndef BH_ENGINE_QUEUE_JOBS_H
#define BH_ENGINE_QUEUE_JOBS_H

#include "engine/state/work_internal.h"

/* A job's way through the engine: submitted, queued, leased, ended.  Ended jobs keep
 * their slot until the next event, so that the owner can still read them. */

/* Create a job from an event that was checked, and queue it. */
void bh_job_create(struct work *work, const struct bh_ev_submit *event);

/* The time from which a job that has not begun can no longer end by its deadline: then it is ended.  Without
 * a time limit, only at the deadline itself. */
uint64_t bh_job_hopeless_ns(uint64_t deadline_ns, uint64_t time_limit_ns);

/* End a job (slot) that holds no lease. */
void bh_job_end(struct work *work, uint32_t job, enum bh_job_state state, enum bh_end_cause cause,
                int32_t exit_status);

/* Back to the queue, at its old position; it holds no lease. */
void bh_job_requeue(struct work *work, uint32_t job, enum bh_end_cause cause);

/* A held job may run: it queues as if submitted now. */
void bh_job_unhold(struct work *work, uint32_t job);

/* The job's first member got a lease (slot), or all let go of theirs. */
void bh_job_attach_lease(struct work *work, uint32_t job, uint32_t lease);
void bh_job_detach(struct work *work, uint32_t job);

/* Free the slots of jobs that ended in an earlier step. */
void bh_jobs_reap(struct bh_engine *engine);

#endif
