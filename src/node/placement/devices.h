#ifndef BH_NODE_PLACEMENT_DEVICES_H
#define BH_NODE_PLACEMENT_DEVICES_H

#include "node/core/node.h"

/* The device nodes that a lease's partitions come with, each once, at most 2 and 3 for each partition; how
 * many. */
uint32_t bh_devices_of(const struct bh_node *node, const struct bh_node_record *lease,
                       struct bh_sandbox_device *ret_devices);

/* The first `length` bytes of `text` with {minor} and {gi} filled in ("w" for what is no MIG
 * instance), in `arena`; NULL when it does not fit. */
char *bh_devices_fill(struct bh_arena *arena, const char *text, size_t length,
                      const struct bh_node_partition *partition);

#endif
