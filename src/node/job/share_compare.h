#ifndef BH_NODE_JOB_SHARE_COMPARE_H
#define BH_NODE_JOB_SHARE_COMPARE_H

#include "node/core/node.h"

/* What the driver says of leases that share GPUs, held against what they may have. */

/* Once per turn of the loop: close those whose jobs ended, open those of jobs that a node
 * before this one started, hear what bulkhead-share says; each second tell it what the driver
 * says that they have, and do what their SKUs say about those that have more than they may. */
void bh_node_shares_dispatch(struct bh_node *node);

#endif
