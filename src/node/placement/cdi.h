#ifndef BH_NODE_PLACEMENT_CDI_H
#define BH_NODE_PLACEMENT_CDI_H

#include "node/core/node.h"

/* A CDI specification for each lease that runs, so that podman, containerd and CRI-O can lend
 * the same partitions: kind bulkhead.dev/gpu, one device for each partition by its UUID and one for
 * all, "lease-12".  Its version is the lowest that has what is in it: podman 4.3 of Debian 12
 * resolves no device of a 0.6.0 one.  No hooks: nothing is executed for it.  It is a
 * convenience: a lease runs without one when the folder cannot be written, and a line in the
 * log and in the job's output says so. */

/* Append the specification of a lease that holds partitions. */
void bh_cdi_put(struct bh_buf *out, const struct bh_node *node, const struct bh_node_record *lease);

/* Write it, in one step, when cdi_dir says where and the lease holds partitions.  What hinders is
 * logged, too. */
bh_rc bh_cdi_write(const struct bh_node *node, const struct bh_node_record *lease, struct bh_err *err);

/* Take it away; none is fine.  One that cannot be is logged. */
void bh_cdi_remove(const struct bh_node *node, uint64_t lease);

/* After a start: remove the files of leases that do not run, and write missing ones. */
void bh_cdi_reconcile(const struct bh_node *node);

#endif
