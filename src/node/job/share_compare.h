#ifndef BH_NODE_JOB_SHARE_COMPARE_H
#define BH_NODE_JOB_SHARE_COMPARE_H

#include "node/core/node.h"

/* What the driver says of leases that share GPUs, held against what they may have. */

/* Once per turn of the loop: close the shares of jobs that ended, open those of jobs that an earlier node
 * started, and read the messages of bulkhead-share.  Each second send it what the driver says that the leases
 * have, and do what the SKUs say about leases that have more than they may. */
void bh_node_shares_dispatch(struct bh_node *node);

#endif
