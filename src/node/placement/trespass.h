#ifndef BH_NODE_PLACEMENT_TRESPASS_H
#define BH_NODE_PLACEMENT_TRESPASS_H

#include "node/core/node.h"

/* A process of one lease on a partition of another.
 *
 * Two jobs that can reach one socket can pass each other descriptors of the driver's files, and who
 * has them is on the partition as far as the driver says.  So that is no evidence against whom the
 * partition belongs to, nor against the node: it is the breach of the lease that the process is of,
 * and that one is ended, with the cause ISOLATION (node/verify/lease_check.h). */

/* A process is on the partition, which the lease `but` has, or nobody (0).  True: it is of another
 * lease, which is ended at the node's next turn, where it was not lent the partition. */
bool bh_trespass_charge(const struct bh_node *node, const struct bh_node_partition *partition, uint32_t pid,
                        uint64_t but);

/* The lease is ended at the node's next turn: its process `does` that to the partition, "uses". */
void bh_trespass_accuse(struct bh_job *job, const struct bh_node_partition *partition, uint32_t pid,
                        const char *does);

#endif
