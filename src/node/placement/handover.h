#ifndef BH_NODE_PLACEMENT_HANDOVER_H
#define BH_NODE_PLACEMENT_HANDOVER_H

#include "node/core/node.h"

/* Before a placement passes from one tenant to another: whether a job still has files of it open.
 *
 * A job can pass descriptors to another that it shares a folder with, and a descriptor outlives the lease.
 * So where a job with a mount used a placement, or where that is unknown because the node was restarted
 * since, a separate process searches what the other jobs with mounts have open and mapped
 * (node/placement/open_files.h), while the hand-over waits.  A job that has such a file is ended
 * (node/placement/trespass.h), and the search is repeated until no job has one.  Descriptors in transit in a
 * socket may be of the placement: a job that leaves them there for long counts as one that has them.
 *
 * A descriptor that passes between a process that was searched and one that was not yet is not seen. */
BH_MUST_USE struct bh_handover *bh_handover_new(void);
void bh_handover_free(struct bh_handover *handover); /* NULL is fine */

/* Before the partition, which exists, is `tenant`'s (0: no tenant yet, which needs no search).  BH_OK and
 * `ret_waits`: ask again.
 *   BH_TIMEOUT  what jobs have open could not be read, several times in a row */
BH_MUST_USE bh_rc bh_handover_check(struct bh_node *node, const struct bh_node_partition *partition,
                                    uint32_t tenant, bool *ret_waits, struct bh_err *err);

/* Before the partition is destroyed, or carved where it is a whole GPU: whether the driver lists processes
 * of other leases there.  Those are ended, which is to be waited for; destroy_wait_ms at most, then
 * false. */
bool bh_handover_is_held(struct bh_node *node, const struct bh_node_partition *partition);

/* The job has ended, or is suspended: descriptors that it passed on may still be open elsewhere. */
void bh_handover_left(struct bh_node *node, const struct bh_job *job);

#endif
