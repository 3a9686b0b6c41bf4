#include "node/job/job_end.h"

#include <stdio.h>

#include "base/assert.h"
#include "model/job.h"
#include "node/core/state_check.h"
#include "node/job/order_answer.h"

/* The runtime's status and not the job's: the command never began.  One that was asked to end did. */
static bool
never_reached_barrier(const struct bh_job *job)
{
    return job->unbuilt && job->start_order && !*job->failed_check && !job->asked
           && job->end.cause == BH_END_EXITED && job->end.exit_status != 0;
}

static bool
job_end_is_failed_start(struct bh_node *node, struct bh_job *job)
{
    if (never_reached_barrier(job))
        snprintf(job->failed_check, sizeof job->failed_check,
                 "its sandbox did not start: the runtime ended with status %d", job->end.exit_status);
    bh_order_answer_start(node, job);
    if (!*job->failed_check)
        return false;
    job->end.cause = BH_END_START_FAILED;
    snprintf(job->end.why, sizeof job->end.why, "%s", job->failed_check);
    return true;
}

static bool
job_end_is_lost_memory(struct bh_job *job)
{
    if (!*job->unrestored)
        return false;
    job->end.cause = BH_END_RESUME_FAILED;
    snprintf(job->end.why, sizeof job->end.why, "%s", job->unrestored);
    return true;
}

static bool
job_end_is_node_stop(struct bh_job *job)
{
    if (!*job->stop_why || *job->failed_check)
        return false;
    job->end.cause = job->stop_cause;
    snprintf(job->end.why, sizeof job->end.why, "%s", job->stop_why);
    return true;
}

bool
bh_job_end_explain(struct bh_node *node, struct bh_job *job)
{
    bh_state_assert_job(&node->state, job);
    BH_ASSERT(job->ended);
    return job_end_is_failed_start(node, job) || job_end_is_lost_memory(job) || job_end_is_node_stop(job);
}
