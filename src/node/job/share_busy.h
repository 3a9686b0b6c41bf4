#ifndef BH_NODE_JOB_SHARE_BUSY_H
#define BH_NODE_JOB_SHARE_BUSY_H

#include "node/share/share_lease_internal.h"

/* Which leases had the time of shared GPUs, and what follows. */

/* Ask the driver.  That it cannot say is logged once. */
void bh_share_busy_read(struct bh_node *node, const char *gpu, struct bh_arena *arena,
                        struct bh_share_busy *ret_busy);
uint32_t bh_share_busy_percent(const struct bh_share_busy *busy, uint32_t pid);

/* Once before the GPUs are read: the time slices since the last call. */
void bh_share_busy_begin(struct bh_node *node);

/* Judge all leases that share a GPU. */
void bh_share_busy_judge(struct bh_node *node, const struct bh_share_use *uses, uint32_t count);

/* Do what is to be done about a lease that runs out of its turns.  The job may be forgotten. */
void bh_share_busy_act(struct bh_node *node, struct bh_share_lease_row *row, struct bh_job *job);

#endif
