#ifndef BH_NODE_SANDBOX_OCCUPANCY_H
#define BH_NODE_SANDBOX_OCCUPANCY_H

#include "node/core/node.h"

/* Whether a place is free: of jobs, and of what the node itself does there. */

/* BH_CONFLICT: another job holds the place of a partition that the lease was lent, it is being
 * scrubbed, or its GPU is being reset. */
BH_MUST_USE bh_rc bh_occupancy_check_lease(const struct bh_node *node, const struct bh_node_record *lease,
                                           struct bh_err *err);

/* BH_CONFLICT: the place is being scrubbed, or its GPU is being reset. */
BH_MUST_USE bh_rc bh_occupancy_check_idle(const struct bh_node *node,
                                          const struct bh_node_partition *placement, struct bh_err *err);

#endif
