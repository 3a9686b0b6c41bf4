#ifndef BH_NODE_CORE_ISOLATION_LEVELS_H
#define BH_NODE_CORE_ISOLATION_LEVELS_H

#include "node/core/node.h"

/* Isolation levels that this node could have and does not offer: D, memory that the driver limits by control
 * group, and E, MPS.  The node checks what they need and reports what it found; no hardware has shown yet
 * that their limits hold, so no node offers them.  The list is of struct bh_msg_grade, in `arena`. */
void bh_isolation_levels_probe(const struct bh_node *node, struct bh_arena *arena,
                               struct bh_list *ret_grades);

#endif
