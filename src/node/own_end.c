#include "node/own_end.h"

#include <stdio.h>

#include "base/log.h"
#include "model/job.h"
#include "node/job.h"

void
bh_own_end_begin(struct bh_node *node, struct bh_job *job, const struct bh_own_end *end)
{
    const struct bh_msg_stop stop = { .lease = job->note.lease, .grace_ns = end->grace_ns };
    struct bh_note asked = { .kind = BH_NOTE_ASKED, .lease = stop.lease, .outcome = end->cause };
    struct bh_err err;
    bh_rc rc;

    snprintf(asked.why, sizeof asked.why, "%.199s", end->why);
    rc = bh_state_note(&node->state, &asked, &err);
    if (rc == BH_OK)
        rc = bh_state_sync(&node->state, &err);
    snprintf(job->own_why, sizeof job->own_why, "%.199s", end->why);
    job->own_cause = end->cause;
    job->asked = true;
    if (rc != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", stop.lease), BH_ERRLOG(&err));
    if (bh_job_stop(node, &stop, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", stop.lease), BH_ERRLOG(&err));
}

bool
bh_own_end_took(struct bh_job *job)
{
    if (!*job->own_why || *job->broken)
        return false;
    job->end.cause = job->own_cause;
    snprintf(job->end.why, sizeof job->end.why, "%s", job->own_why);
    return true;
}
