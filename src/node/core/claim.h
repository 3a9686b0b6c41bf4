#ifndef BH_NODE_CORE_CLAIM_H
#define BH_NODE_CORE_CLAIM_H

#include "node/core/node.h"

/* Whose the control group is that holds the jobs (cgroup_parent): a node ends what it does not know
 * there, so one group must never serve two sites.  The group carries its site's name in an extended
 * attribute, and, while that site's node runs, a lock on a file of it that root alone can open
 * (docs/adr/0068). */

/* Make the group and claim it.  BH_CONFLICT: the node of another site or its jobs run in it, or that cannot
 * be read.  A site with no process in the group has lost its claim. */
BH_MUST_USE bh_rc bh_claim_groups(struct bh_node *node, struct bh_err *err);

/* Remove the group where nothing is left in it, if it is this node's. */
void bh_claim_leave(struct bh_node *node);

#endif
