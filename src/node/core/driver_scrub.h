#ifndef BH_NODE_CORE_DRIVER_SCRUB_H
#define BH_NODE_CORE_DRIVER_SCRUB_H

#include "node/core/node.h"

/* Whether the driver itself clears memory that is freed: it says so in its parameters. */

enum bh_driver_scrub bh_driver_scrub_read(const struct bh_node *node);

/* What the driver's own parameters say, and whether this GPU server may be used with them.
 */
BH_MUST_USE bh_rc bh_driver_scrub_check(const struct bh_node *node, struct bh_err *err);

#endif
