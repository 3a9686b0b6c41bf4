#ifndef BH_NODE_PLACEMENT_INVENTORY_H
#define BH_NODE_PLACEMENT_INVENTORY_H

#include "node/core/node.h"

/* The GPUs of this machine as the last scan found them. */

/* The GPU as last scanned, or NULL. */
const struct bh_device_gpu *bh_node_inventory_gpu(const struct bh_node *node, const char *uuid);

/* Whether the last scan does not show the GPU's instances: the driver has lost it, does not name it, or did
 * not answer. */
bool bh_node_inventory_is_unread(const struct bh_node *node, const char *uuid);

/* Memory units that the partition lies on; all of the GPU's where that is not known. */
uint32_t bh_node_inventory_units(const struct bh_node *node, const struct bh_node_partition *wanted);

#endif
