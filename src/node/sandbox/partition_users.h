#ifndef BH_NODE_SANDBOX_PARTITION_USERS_H
#define BH_NODE_SANDBOX_PARTITION_USERS_H

#include <stdbool.h>

#include "node/core/node.h"

/* Whether the process, which the driver lists on the partition's GPU, uses the partition without a right to
 * it: it lives, is not in the job, and is not of another share of the GPU where the partition is a share. */
bool bh_partition_user_is_foreign(const struct bh_node *node, const struct bh_job *job,
                                  const struct bh_node_partition *partition,
                                  const struct bh_device_process *process);

#endif
