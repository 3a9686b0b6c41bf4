#ifndef BH_NODE_DEVICES_H
#define BH_NODE_DEVICES_H

#include "node/node.h"

/* The device nodes that a lease's pieces come with, each once, at most 2 and 3 for each piece; how
 * many. */
uint32_t bh_devices_of(const struct bh_node *node, const struct bh_note *lease,
                       struct bh_sandbox_device *ret_devices);

#endif
