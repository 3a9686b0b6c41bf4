#ifndef BH_NODE_CORE_SCRATCH_H
#define BH_NODE_CORE_SCRATCH_H

#include "node/core/node.h"

/* A job's private scratch: a file of fixed size with an ext4 of its own, so that its size
 * is a limit on any file system; shown at BH_SCRATCH_TARGET, and removed with the job.  The
 * file is made and formatted by bulkhead-unpack (unpack.h), beside the node's loop. */

#define BH_SCRATCH_TARGET "/scratch"

/* Where the files lie; it may not be there yet. */
void bh_scratch_folder(const struct bh_node *node, char ret_path[BH_NODE_PATH_MAX]);

/* The file of that lease. */
void bh_scratch_path(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX]);

/* Whether the job that is being started may have that much, and the folder is there.  What it asks
 * for counts as its party's (party.h) from then on.
 *   BH_RANGE        more than scratch_max_mib, or than scratch_tenant_share ever gives its party
 *   BH_QUOTA        others of its party have what that gives
 *   BH_UNAVAILABLE  mkfs.ext4 is not installed */
BH_MUST_USE bh_rc bh_scratch_acquire(const struct bh_node *node, struct bh_job *job, uint64_t bytes,
                                     struct bh_err *err);

/* Mount it at the folder `place`, its root given to that user.  The loop device goes with
 * the last mount.  BH_IO, BH_UNAVAILABLE: no loop devices here. */
BH_MUST_USE bh_rc bh_scratch_mount(const struct bh_node *node, uint64_t lease, const char *place,
                                   uint32_t owner, struct bh_err *err);

/* Remove the file, if there is one; what is still mounted goes when it is not. */
void bh_scratch_remove(const struct bh_node *node, uint64_t lease);

/* After a start of the node: remove files of leases that have no job. */
void bh_scratch_sweep(const struct bh_node *node);

#endif
