#include "node/share_end.h"

#include <stdio.h>

#include "base/log.h"
#include "model/job.h"
#include "node/job.h"

#define GRACE (10 * BH_NS_PER_S)

void
bh_node_share_end(struct bh_node *node, struct bh_job *job, uint32_t cause, const char *why)
{
    const struct bh_msg_stop stop = { .lease = job->note.lease, .grace_ns = GRACE };
    struct bh_note asked = { .kind = BH_NOTE_ASKED, .lease = job->note.lease, .outcome = cause };
    struct bh_err err;
    bh_rc rc;

    snprintf(asked.why, sizeof asked.why, "%s", why);
    rc = bh_state_note(&node->state, &asked, &err);
    if (rc == BH_OK)
        rc = bh_state_sync(&node->state, &err);
    snprintf(job->over_share, sizeof job->over_share, "%s", why);
    job->over_cause = cause;
    job->asked = true;
    if (rc != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->note.lease), BH_ERRLOG(&err));
    if (bh_job_stop(node, &stop, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", stop.lease), BH_ERRLOG(&err));
}

bool
bh_node_share_ended(struct bh_job *job)
{
    if (!*job->over_share || *job->broken)
        return false;
    job->end.cause = job->over_cause;
    snprintf(job->end.why, sizeof job->end.why, "%s", job->over_share);
    return true;
}
