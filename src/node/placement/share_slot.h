#ifndef BH_NODE_PLACEMENT_SHARE_SLOT_H
#define BH_NODE_PLACEMENT_SHARE_SLOT_H

#include "node/core/node.h"

/* Shares of GPUs on this node (docs/shares.md).
 *
 * A share is a partition that no driver call makes: the order to carve one puts it into the node's journal,
 * when its GPU is one that Bulkhead may change, is not in MIG mode, and holds nothing but shares.
 * node/share/share_lease.h has what leases use of them. */

enum bh_share_flags {
    BH_SHARE_IS_HARD = 1,        /* never more than its weight */
    BH_SHARE_IS_LATENCY = 2,     /* its turn comes sooner */
    BH_SHARE_IS_MULTIPLEXED = 4, /* the whole GPU in turns */
    /* of a share that was lent alone: what the job's SKU says, enum bh_over_cap */
    BH_SHARE_IS_THROTTLED = 8, /* over its cap */
    BH_SHARE_IS_STOPPED = 16,
    /* and enum bh_managed */
    BH_SHARE_HAS_MANAGED_FREE = 32,
    BH_SHARE_HAS_NO_MANAGED = 64,
    BH_SHARE_IS_STOPPED_OUT = 128, /* enum bh_over_time: out of its turns */
};

/* Shares that were made on the GPU, but for that one, whether a lease has them or not. */
uint32_t bh_share_slot_others(const struct bh_node *node, const char *gpu, uint64_t but);

/* The leases, not the slots, that use memory of a shared GPU now.  A suspended one uses none. */
struct bh_share_neighbours {
    uint32_t leases;
    uint64_t promised_bytes; /* their caps, and a context for each */
};
struct bh_share_neighbours bh_share_slot_neighbours(const struct bh_node *node, const char *gpu);

/* What a scrub beside these may take: the rest, less what the driver keeps and the helper's own
 * context; 0: nothing. */
uint64_t bh_share_slot_free_bytes(const struct bh_node *node, const struct bh_node_partition *share,
                                  const struct bh_share_neighbours *neighbours);

/* Whether the tenant may have memory of the GPU while others run there.  BH_UNAVAILABLE: memory
 * of other tenants cannot all be scrubbed then, and node.conf or the driver does not let that be
 * enough. */
BH_MUST_USE bh_rc bh_share_slot_check_memory(const struct bh_node *node,
                                             const struct bh_node_partition *share, uint32_t tenant,
                                             struct bh_err *err);

/* Whether a share could be made for the tenant beside the present ones.
 *   BH_INVALID      it has no cap, no weight, or a cap that is no whole number of granules
 *   BH_RANGE        its slot, or a cap above the GPU's memory
 *   BH_CONFLICT     another has its slot
 * else as bh_share_slot_check_memory */
BH_MUST_USE bh_rc bh_share_slot_check(const struct bh_node *node, const struct bh_node_partition *wanted,
                                      uint32_t tenant, struct bh_err *err);

/* Note that the share was scrubbed for the tenant, or needed no scrub: it may be lent to the
 * tenant until another lease has memory of the GPU. */
BH_MUST_USE bh_rc bh_share_slot_clear(struct bh_node *node, uint64_t partition, uint32_t tenant,
                                      struct bh_err *err);

/* What the start says beside the partition's own of how the share is kept to, into the lease's copy of
 * the partition. */
void bh_share_slot_lend(const struct bh_msg_start *start, struct bh_node_partition *lent);

#endif
