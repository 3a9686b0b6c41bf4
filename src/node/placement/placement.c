#include "node/placement/placement.h"

#include <string.h>

#include "base/assert.h"
#include "model/share.h"
#include "node/core/state_check.h"

bool
bh_placement_is_share(const struct bh_node_partition *partition)
{
    return strchr(partition->profile, ':') != NULL;
}

bool
bh_placement_is_instance(const struct bh_node_partition *partition)
{
    return partition->gi < BH_SHARE_GI;
}

uint32_t
bh_placement_share_gi(uint32_t slot)
{
    BH_ASSERT(slot < BH_GPU_SHARES_MAX);
    return BH_SHARE_GI + slot;
}

bool
bh_placement_is_whole(const struct bh_node_partition *partition)
{
    return strcmp(partition->profile, "whole") == 0;
}

bool
bh_placement_makes_instance(const struct bh_node_partition *partition)
{
    return !bh_placement_is_whole(partition) && !bh_placement_is_share(partition);
}

bool
bh_placement_is_suspended(const struct bh_job *job)
{
    BH_ASSERT(!job->frozen || !job->ended);
    return job->frozen && job->suspended;
}

static bool
placement_overlaps(const struct bh_node_partition *a, const struct bh_node_partition *b)
{
    return strcmp(a->gpu, b->gpu) == 0
           && (a->gi == BH_WHOLE_GPU || b->gi == BH_WHOLE_GPU || a->gi == b->gi || a->start == b->start
               || bh_placement_is_share(a) != bh_placement_is_share(b));
}

bool
bh_placement_overlaps(const struct bh_node_record *lease, const struct bh_node_partition *placement)
{
    BH_ASSERT(lease->lent_count <= BH_COUNT(lease->lent));
    for (uint32_t i = 0; i < lease->lent_count; i++) {
        if (placement_overlaps(&lease->lent[i], placement))
            return true;
    }
    return false;
}

const struct bh_job *
bh_placement_holder(const struct bh_node *node, const struct bh_node_partition *placement, uint64_t but)
{
    bh_state_assert(&node->state);
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        bh_state_assert_job(&node->state, job);
        if (job->record.lease != but && !job->ended && !bh_placement_is_suspended(job)
            && bh_placement_overlaps(&job->record, placement))
            return job;
    }
    return NULL;
}
