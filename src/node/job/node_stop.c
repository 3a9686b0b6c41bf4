#include "node/job/node_stop.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/log.h"
#include "model/job.h"
#include "node/core/state_check.h"
#include "node/job/unpack.h"

void
bh_node_stop_begin(struct bh_node *node, struct bh_job *job, const struct bh_node_stop *end)
{
    const struct bh_msg_stop stop = { .lease = job->record.lease, .grace_ns = end->grace_ns };
    struct bh_node_record asked = { .kind = BH_NODE_RECORD_STOPPING,
                                    .lease = stop.lease,
                                    .outcome = end->cause };
    struct bh_err err;
    bh_rc rc;

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(!job->ended && *end->why && end->cause != BH_END_NONE);
    snprintf(asked.why, sizeof asked.why, "%.199s", end->why);
    rc = bh_state_record(&node->state, &asked, &err);
    if (rc == BH_OK)
        rc = bh_state_sync(&node->state, &err);
    snprintf(job->stop_why, sizeof job->stop_why, "%.199s", end->why);
    job->stop_cause = end->cause;
    job->asked = true;
    if (rc != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", stop.lease), BH_ERRLOG(&err));
    if (bh_unpack_stop(node, &stop, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", stop.lease), BH_ERRLOG(&err));
}
