#ifndef BH_NODE_CORE_ISOLATION_LEVELS_H
#define BH_NODE_CORE_ISOLATION_LEVELS_H

#include "node/core/node.h"

/* Grades of isolation that this node could have and does not offer: D, memory that the driver
 * limits by control group, and E, MPS.  It looks for what they need and tells what it found;
 * no hardware has shown yet that their limits hold, so they are offered nowhere.  The list is
 * of struct bh_msg_grade, in `arena`. */
void bh_isolation_levels_probe(const struct bh_node *node, struct bh_arena *arena,
                               struct bh_list *ret_grades);

#endif
