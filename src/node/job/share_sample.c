#include "node/job/share_sample.h"

#include "node/placement/placement.h"
#include "node/placement/share_slot.h"
#include "node/share/share_lease.h"
#include "node/share/share_lease_internal.h"

void
bh_node_share_sample(const struct bh_node *node, const struct bh_job *job, struct bh_msg_sample *sample)
{
    const struct bh_share_lease_state *state =
        node->share_leases ? bh_share_host_find(node->share_leases->host, job->record.lease) : NULL;

    if (!state || !bh_node_share_is(job))
        return;
    for (uint32_t k = 0; k < job->record.lent_count; k++) {
        const struct bh_node_partition *lent = &job->record.lent[k];

        if (bh_placement_is_share(lent))
            sample->share_cap_bytes += lent->cap_bytes + lent->context_bytes;
    }
    for (uint32_t d = 0; d < BH_SHARE_DEVICES_MAX; d++) {
        sample->share_charged_bytes += state->used_bytes[d];
        sample->share_driver_bytes += (uint64_t)state->driver_mib[d] << 20;
    }
    sample->share_slice_ns = state->granted_ns;
    sample->share_permille = state->permille;
    sample->share_promised = state->weight * 1000 / BH_GPU_PARTS;
}
