#ifndef BH_NODE_SHARE_SLOT_H
#define BH_NODE_SHARE_SLOT_H

#include "node/node.h"

/* Shares of GPUs on this node (docs/shares.md).
 *
 * A share is a piece that no driver call makes: the order to carve one puts it into the node's
 * journal, when its GPU is one that Bulkhead may change, is not in MIG mode, and holds nothing
 * but shares.  What leases have of them stands in node/share_lease.h. */

enum bh_share_flags {
    BH_SHARE_IS_HARD = 1,        /* never more than its weight */
    BH_SHARE_IS_LATENCY = 2,     /* its turn comes sooner */
    BH_SHARE_IS_MULTIPLEXED = 4, /* the whole GPU in turns */
    /* of a share that was lent alone: what the job's SKU says, enum bh_over_cap */
    BH_SHARE_IS_THROTTLED = 8,   /* over its cap */
    BH_SHARE_IS_STOPPED = 16,
    /* and enum bh_managed */
    BH_SHARE_HAS_MANAGED_FREE = 32,
    BH_SHARE_HAS_NO_MANAGED = 64,
    BH_SHARE_IS_STOPPED_OUT = 128, /* enum bh_over_time: out of its turns */
};

/* Whether the piece is a share; whether it is a MIG instance. */
bool bh_share_slot_is(const struct bh_note_piece *piece);
bool bh_share_slot_is_instance(const struct bh_note_piece *piece);

/* The number that stands for the instance of a piece in that slot: of no instance. */
uint32_t bh_share_slot_gi(uint32_t slot);

/* Shares that were made on the GPU, but for that one. */
uint32_t bh_share_slot_others(const struct bh_node *node, const char *gpu, uint64_t but);

/* Whether a share could be made for the tenant beside those that stand there.
 *   BH_INVALID      it has no cap, no weight, or a cap that is no whole number of granules
 *   BH_RANGE        its slot, or a cap above the GPU's memory
 *   BH_CONFLICT     another has its slot
 *   BH_UNAVAILABLE  other tenants used the memory, which cannot be filled while others run, and
 *                   node.conf or the driver does not let that be enough */
BH_MUST_USE bh_rc bh_share_slot_check(const struct bh_node *node, const struct bh_note_piece *wanted,
                                 uint32_t tenant, struct bh_err *err);

/* Note that the share's memory may be used by the tenant: the last step of its carving. */
BH_MUST_USE bh_rc bh_share_slot_clear(struct bh_node *node, uint64_t partition, uint32_t tenant,
                                 struct bh_err *err);

#endif
