#ifndef BH_NODE_SHARE_SLOT_H
#define BH_NODE_SHARE_SLOT_H

#include "node/node.h"

/* Shares of GPUs on this node (docs/shares.md).
 *
 * A share is a piece that no driver call makes: the order to carve one puts it into the node's
 * journal, when its GPU is one that Bulkhead may change, is not in MIG mode, and holds nothing
 * but shares.  While a lease that was lent it may run, the share is open: what it allows is
 * known to whoever meters and arbitrates the GPU.  Which ones are open follows from the
 * journal alone, so a node that was killed opens the same ones again. */

enum bh_share_flags {
    BH_SHARE_IS_HARD = 1,        /* never more than its weight */
    BH_SHARE_IS_LATENCY = 2,     /* its turn comes sooner */
    BH_SHARE_IS_MULTIPLEXED = 4, /* the whole GPU in turns */
};

/* What a lease has of a GPU. */
struct bh_share_grant {
    char gpu[BH_UUID_MAX];
    uint64_t lease, partition;
    uint64_t cap_bytes;     /* of GPU memory, a multiple of BH_SHARE_GRANULE_BYTES */
    uint64_t context_bytes; /* beside the cap, for the context of one process */
    uint32_t weight;        /* parts of 4200 of the GPU's time */
    uint32_t flags;         /* enum bh_share_flags */
};

enum { BH_SHARES_MAX = 1024 };

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

/* A lease has the share from now on, or no more.  Opening one that is open changes nothing.
 * BH_FULL: BH_SHARES_MAX are open. */
BH_MUST_USE bh_rc bh_share_slot_open(struct bh_node *node, const struct bh_share_grant *grant,
                                struct bh_err *err);
void bh_share_slot_close(struct bh_node *node, uint64_t lease, uint64_t partition);

/* Open and close so that exactly the shares are open whose leases are lent them, have not
 * ended and are not suspended.  BH_FULL as above; the rest is done then. */
BH_MUST_USE bh_rc bh_share_slot_sync(struct bh_node *node, struct bh_err *err);

void bh_share_slot_free(struct bh_node *node);

#endif
