#include "node/sandbox/occupancy.h"

#include <inttypes.h>

#include "node/placement/placement.h"
#include "node/placement/reset_hold.h"
#include "node/sandbox/helper_sandbox.h"

bh_rc
bh_occupancy_check_lease(const struct bh_node *node, const struct bh_node_record *lease, struct bh_err *err)
{
    for (uint32_t i = 0; i < lease->lent_count; i++) {
        const struct bh_job *holder = bh_placement_holder(node, &lease->lent[i], lease->lease);

        if (holder)
            return bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " holds the placement of partition %" PRIu64,
                              holder->record.lease, lease->lent[i].partition);
        if (bh_helper_sandbox_holds(node, &lease->lent[i]))
            return bh_err_set(err, BH_CONFLICT, "partition %" PRIu64 " is being scrubbed",
                              lease->lent[i].partition);
        if (bh_reset_hold_has(node, lease->lent[i].gpu))
            return bh_err_set(err, BH_CONFLICT, "GPU %s is being reset", lease->lent[i].gpu);
    }
    return BH_OK;
}

bh_rc
bh_occupancy_check_idle(const struct bh_node *node, const struct bh_node_partition *placement,
                        struct bh_err *err)
{
    if (bh_helper_sandbox_holds(node, placement))
        return bh_err_set(err, BH_CONFLICT, "placement %u of GPU %s is being scrubbed", placement->start,
                          placement->gpu);
    return bh_reset_hold_has(node, placement->gpu)
               ? bh_err_set(err, BH_CONFLICT, "GPU %s is being reset", placement->gpu)
               : BH_OK;
}
