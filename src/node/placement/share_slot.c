#include "node/placement/share_slot.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "model/share.h"
#include "node/core/driver_scrub.h"
#include "node/core/state_check.h"
#include "node/placement/inventory.h"
#include "node/placement/placement.h"

uint32_t
bh_share_slot_others(const struct bh_node *node, const char *gpu, uint64_t but)
{
    uint32_t count = 0;

    bh_state_assert(&node->state);
    for (uint32_t i = 0; i < node->state.partition_count; i++) {
        const struct bh_node_partition *partition = &node->state.partitions[i];

        bh_state_assert_partition(partition);
        count += partition->partition != but && bh_placement_is_share(partition)
                 && strcmp(partition->gpu, gpu) == 0;
    }
    return count;
}

struct bh_share_neighbours
bh_share_slot_neighbours(const struct bh_node *node, const char *gpu)
{
    struct bh_share_neighbours found = { 0 };

    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];
        bool here = false;

        bh_state_assert_job(&node->state, job);
        if (job->ended || bh_placement_is_suspended(job))
            continue;
        for (uint32_t p = 0; p < job->record.lent_count; p++) {
            const struct bh_node_partition *lent = &job->record.lent[p];

            if (!bh_placement_is_share(lent) || strcmp(lent->gpu, gpu) != 0)
                continue;
            here = true;
            found.promised_bytes += lent->cap_bytes + lent->context_bytes;
        }
        found.leases += here;
    }
    return found;
}

uint64_t
bh_share_slot_free_bytes(const struct bh_node *node, const struct bh_node_partition *share,
                         const struct bh_share_neighbours *neighbours)
{
    const struct bh_device_gpu *gpu = bh_node_inventory_gpu(node, share->gpu);
    enum bh_gpu_model model = gpu ? bh_model_by_product(gpu->product) : BH_GPU_MODEL_NONE;
    uint64_t all = (uint64_t)share->memory_mib << 20;
    uint64_t taken = neighbours->promised_bytes + share->context_bytes;

    bh_state_assert_partition(share);
    BH_ASSERT(bh_placement_is_share(share));
    taken += all / BH_GPU_PARTS * (model ? bh_share_reserve_parts(model) : 0);
    return taken < all ? (all - taken) / BH_SHARE_GRANULE_BYTES * BH_SHARE_GRANULE_BYTES : 0;
}

bh_rc
bh_share_slot_check_memory(const struct bh_node *node, const struct bh_node_partition *share, uint32_t tenant,
                           struct bh_err *err)
{
    if (bh_share_slot_neighbours(node, share->gpu).leases == 0
        || bh_ownership_map_allows(&node->state.ownership, share, tenant))
        return BH_OK;
    if (node->conf.scrub_required)
        return bh_err_set(err, BH_UNAVAILABLE,
                          "memory of GPU %s cannot all be scrubbed while others share it, and "
                          "scrub_required is set",
                          share->gpu);
    if (bh_driver_scrub_read(node) == BH_DRIVER_SCRUB_OFF)
        return bh_err_set(err, BH_UNAVAILABLE,
                          "memory of GPU %s cannot all be scrubbed while others share it, and the "
                          "driver does not clear it",
                          share->gpu);
    return BH_OK;
}

static bh_rc
check_size(const struct bh_node *node, const struct bh_node_partition *wanted, struct bh_err *err)
{
    const struct bh_device_gpu *gpu = bh_node_inventory_gpu(node, wanted->gpu);

    if (wanted->start >= BH_GPU_SHARES_MAX)
        return bh_err_set(err, BH_RANGE, "a GPU has %d slots for shares, not %u", BH_GPU_SHARES_MAX,
                          wanted->start + 1);
    if (wanted->cap_bytes == 0 || wanted->cap_bytes % BH_SHARE_GRANULE_BYTES || wanted->share_weight == 0
        || wanted->share_weight > BH_GPU_PARTS)
        return bh_err_set(err, BH_INVALID, "share %s has no valid cap or no weight", wanted->profile);
    if (gpu && (wanted->cap_bytes >> 20) > gpu->memory_mib)
        return bh_err_set(err, BH_RANGE, "GPU %s has %u MiB, not %" PRIu64, wanted->gpu, gpu->memory_mib,
                          wanted->cap_bytes >> 20);
    return BH_OK;
}

bh_rc
bh_share_slot_check(const struct bh_node *node, const struct bh_node_partition *wanted, uint32_t tenant,
                    struct bh_err *err)
{
    struct bh_node_partition placement = *wanted;
    bh_rc rc = check_size(node, wanted, err);

    if (rc == BH_OK && bh_state_partition_at(&node->state, wanted->gpu, bh_placement_share_gi(wanted->start)))
        return bh_err_set(err, BH_CONFLICT, "slot %u of GPU %s is taken", wanted->start, wanted->gpu);
    placement.units = bh_node_inventory_units(node, wanted);
    return rc == BH_OK ? bh_share_slot_check_memory(node, &placement, tenant, err) : rc;
}

bh_rc
bh_share_slot_clear(struct bh_node *node, uint64_t id, uint32_t tenant, struct bh_err *err)
{
    const struct bh_node_partition *partition = bh_state_partition(&node->state, id);
    struct bh_node_record record = { .kind = BH_NODE_RECORD_PARTITION };

    BH_ASSERT(partition);
    if (!bh_placement_is_share(partition) || partition->cleared_for == tenant)
        return BH_OK;
    record.partition = *partition;
    record.partition.cleared_for = tenant;
    return bh_state_record(&node->state, &record, err);
}

void
bh_share_slot_lend(const struct bh_msg_start *start, struct bh_node_partition *lent)
{
    bh_state_assert_partition(lent);
    lent->share_flags |= start->over_time == BH_OVER_TIME_STOP ? BH_SHARE_IS_STOPPED_OUT : 0;
    lent->share_flags |= start->managed == BH_MANAGED_HOST     ? BH_SHARE_HAS_MANAGED_FREE
                         : start->managed == BH_MANAGED_REFUSE ? BH_SHARE_HAS_NO_MANAGED
                                                               : 0;
    lent->share_flags |= start->over_cap == BH_OVER_CAP_THROTTLE ? BH_SHARE_IS_THROTTLED
                         : start->over_cap == BH_OVER_CAP_STOP   ? BH_SHARE_IS_STOPPED
                                                                 : 0;
}
