#ifndef BH_NODE_PLACEMENT_PLACEMENT_H
#define BH_NODE_PLACEMENT_PLACEMENT_H

#include "node/core/node.h"

/* Places on GPUs: which kind of partition one is, and which jobs have it. */

/* Whether the partition is a share; whether it is a MIG instance, or is not known yet to be none. */
bool bh_placement_is_share(const struct bh_node_partition *partition);
bool bh_placement_is_instance(const struct bh_node_partition *partition);

/* By its profile, before it exists: the whole GPU; an instance that the driver is to make. */
bool bh_placement_is_whole(const struct bh_node_partition *partition);
bool bh_placement_makes_instance(const struct bh_node_partition *partition);

/* The instance number of a share in that slot: no instance has it. */
uint32_t bh_placement_share_gi(uint32_t slot);

/* Whether it is frozen and was seen to hold no context: then it does not hold its partitions. */
bool bh_placement_is_suspended(const struct bh_job *job);

/* The job that holds a partition of that placement, other than `but`'s, or NULL.  By placement and not by
 * number: a resumed job is where it was, on a partition carved anew.  A whole GPU overlaps each of its
 * instances; of `placement`, gpu, gi and start count. */
const struct bh_job *bh_placement_holder(const struct bh_node *node,
                                         const struct bh_node_partition *placement, uint64_t but);

/* Whether the lease was lent that place, or a part of it. */
bool bh_placement_overlaps(const struct bh_node_record *lease, const struct bh_node_partition *placement);

#endif
