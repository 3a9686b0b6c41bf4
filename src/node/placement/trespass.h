#ifndef BH_NODE_PLACEMENT_TRESPASS_H
#define BH_NODE_PLACEMENT_TRESPASS_H

#include "node/core/node.h"

/* A process of one lease on a partition of another.
 *
 * Two jobs that can reach one socket can pass each other descriptors of the driver's files, and the driver
 * lists a process that has them as using the partition.  That is no evidence against the partition's lease,
 * nor against the node: it is a breach by the lease that the process belongs to, and that lease is ended with
 * the cause ISOLATION (node/verify/lease_check.h). */

/* A process uses the partition, which the lease `but` has (0: no lease).  True: the process belongs to
 * another lease that was not lent the partition; that lease is ended at the node's next turn. */
bool bh_trespass_charge(const struct bh_node *node, const struct bh_node_partition *partition, uint32_t pid,
                        uint64_t but);

/* The lease is ended at the node's next turn: its process `does` that to the partition, "uses". */
void bh_trespass_accuse(struct bh_job *job, const struct bh_node_partition *partition, uint32_t pid,
                        const char *does);

#endif
