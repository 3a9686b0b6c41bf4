#ifndef BH_NODE_PLACEMENT_HANDOVER_H
#define BH_NODE_PLACEMENT_HANDOVER_H

#include "node/core/node.h"

/* Before a place goes from one tenant to another: whether a job has files of it open still.
 *
 * A job can pass descriptors to another that it shares a folder with, and a descriptor outlives the
 * lease.  So where a job with a mount was on a place, or where nobody knows because the node was
 * started since, a process of its own looks through what the other jobs with mounts have open and
 * mapped (node/placement/open_files.h), while the hand-over waits.  Who has such a file is ended
 * (node/placement/trespass.h), and is looked for again until nobody has one.  Descriptors on their way in a
 * socket may be of the place: who leaves them there for long is taken for one who has them.
 *
 * Between two processes of which the one was looked at and the other was not yet, a descriptor can
 * be passed on unseen. */
BH_MUST_USE struct bh_handover *bh_handover_new(void);
void bh_handover_free(struct bh_handover *handover); /* NULL is fine */

/* Before the partition, which exists, is `tenant`'s (0: nobody's yet, which needs no look).  BH_OK and
 * `ret_waits`: ask again.
 *   BH_TIMEOUT  what jobs have open could not be read, several times in a row */
BH_MUST_USE bh_rc bh_handover_check(struct bh_node *node, const struct bh_node_partition *partition,
                                    uint32_t tenant, bool *ret_waits, struct bh_err *err);

/* Before the partition is destroyed, or carved where it is a whole GPU: whether the driver lists processes
 * of other leases there.  Those are ended, which is to be waited for; destroy_wait_ms at most, then
 * false. */
bool bh_handover_is_held(struct bh_node *node, const struct bh_node_partition *partition);

/* The job has ended, or is suspended: what it passed on before may still be open elsewhere. */
void bh_handover_left(struct bh_node *node, const struct bh_job *job);

#endif
