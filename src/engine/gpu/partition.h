#ifndef BH_ENGINE_GPU_PARTITION_H
#define BH_ENGINE_GPU_PARTITION_H

#include "engine/state/work_internal.h"

/* The partitions that GPUs are carved into: slots of TABLE_PARTITION, chained on their GPU.
 * Each change here keeps the GPU's occupancy, its ledger split and its tenant's
 * rates in step. */

/* Between tries to destroy what would not go. */
#define BH_PARTITION_RETRY_NS UINT64_C(30000000000)

/* A new decided to be carved for a lease; idle partitions in its way are destroyed first.
 * Orders the effects. */
uint32_t bh_partition_carve(struct work *work, const struct bh_partition *decided, uint32_t lease);

/* The carving came out well: the partition is its lease's, or idle when that is gone. */
void bh_partition_set_ready(struct work *work, uint32_t partition);

/* An idle partition goes to a lease of the tenant that held it last. */
void bh_partition_assign(struct work *work, uint32_t partition, uint32_t lease);

/* A lease releases a partition: idle, or left to finish its carving. */
void bh_partition_release(struct work *work, uint32_t partition);

/* An idle partition is destroyed for a tenant (id), or for none yet (0). */
void bh_partition_clear(struct work *work, uint32_t partition, uint32_t tenant);

/* What shares of the GPU may have follows from what the site says, and from what they were sold
 * by while there are any. */
void bh_partition_limit_shares(struct gpu *gpu);

/* The GPU's node went or came back: what its leases cost is kept aside, or charged to whose they
 * are.  ADR 0064. */
void bh_partition_node_changed(struct work *work, uint32_t gpu);

/* The decided is no more. */
void bh_partition_drop(struct work *work, uint32_t partition);

/* The carving failed, or a leased decided was found missing: dropped when its lease
 * lets go. */
void bh_partition_set_lost(struct work *work, uint32_t partition);

/* Destroying it failed: nothing may stand there until it is gone.  It is tried again after
 * a while, and when its node or GPU comes back. */
void bh_partition_set_stuck(struct work *work, uint32_t partition);

/* Its scrub failed: the last tenant's bytes may still be there.  No job gets the partition; its scrub is
 * tried again with growing pauses, BH_UNCLEAN_TRIES times, and then only on request (bh_partition_retry). */
enum { BH_UNCLEAN_TRIES = 6 };
void bh_partition_set_unclean(struct work *work, uint32_t partition);

/* An unclean partition that has no lease is kept, like one that could not be destroyed. */
void bh_partition_quarantine(struct work *work, uint32_t partition);

/* The unclean partitions of a GPU are tried again like any other that is stuck.  An operator asks
 * for it; today by taking a GPU's cordon off. */
void bh_partition_retry(struct work *work, uint32_t gpu);

/* Whether a stuck partition is left alone until a retry is requested. */
bool bh_partition_is_given_up(const struct bh_engine *engine, uint32_t partition);

/* When a tick should try the GPU's stuck partitions again, or UINT64_MAX. */
uint64_t bh_gpu_retry_ns(const struct bh_engine *engine, uint32_t gpu);

#endif
