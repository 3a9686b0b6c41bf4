#include "node/placement/trespass.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "node/core/state_check.h"
#include "node/placement/placement.h"

static struct bh_job *
trespass_find(const struct bh_node *node, uint32_t pid, uint64_t but)
{
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        struct bh_job *job = &node->state.jobs[i];
        struct bh_err ignored;
        bool inside = false;
        char id[32];

        bh_state_assert_job(&node->state, job);
        if (job->record.lease == but || job->ended)
            continue;
        bh_node_job_id(job->record.lease, id);
        if (node->runtime.ops->has(node->runtime.self, id, (pid_t)pid, &inside, &ignored) == BH_OK && inside)
            return job;
    }
    return NULL;
}

void
bh_trespass_accuse(struct bh_job *job, const struct bh_node_partition *partition, uint32_t pid,
                   const char *does)
{
    BH_ASSERT(!job->ended && partition);
    BH_STATE_ASSERT_TEXT(job->isolation.charge);
    if (!*job->isolation.charge && !*job->stop_why)
        snprintf(job->isolation.charge, sizeof job->isolation.charge,
                 "its process %" PRIu32 " %s partition %" PRIu64
                 " (%.16s of %.48s), which it has no lease on",
                 pid, does, partition->partition, partition->profile, partition->gpu);
}

bool
bh_trespass_charge(const struct bh_node *node, const struct bh_node_partition *partition, uint32_t pid,
                   uint64_t but)
{
    struct bh_job *job = trespass_find(node, pid, but);

    if (!job || bh_placement_overlaps(&job->record, partition))
        return false;
    bh_trespass_accuse(job, partition, pid, "uses");
    return true;
}
