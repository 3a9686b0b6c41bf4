#ifndef BH_DAEMON_NODES_INVENTORY_H
#define BH_DAEMON_NODES_INVENTORY_H

#include "daemon/state/core.h"
#include "wire/message.h"

/* What a node reports about itself, compared with what the engine believes: each
 * difference becomes one event. */

/* Whether the inventory can be taken at all.  BH_CONFLICT: a GPU in it belongs to a node
 * of another name. */
BH_MUST_USE bh_rc bh_inventory_check(const struct bh_core *core, const struct bh_msg_inventory *inventory,
                                     struct bh_err *err);

/* GPUs, partitions that are gone, and leases that the node has never heard of.  The
 * node's inventory names every lease it has, also ended ones not yet acknowledged.
 *
 * A GPU that the node cannot read, or that its driver names no more, stays what it was and is
 * fenced until an inventory has it whole; one that was never read is not taken in before. */
BH_MUST_USE bh_rc bh_inventory_apply(struct bh_core *core, bh_node_id node,
                                     const struct bh_msg_inventory *inventory, struct bh_err *err);

/* What jobs may take together of a node's cores and memory. */
struct bh_node_offer {
    uint32_t cpu_milli, memory_mib;
};
struct bh_node_offer bh_inventory_offer(const struct bh_msg_inventory *inventory);

/* The node is there and has reported what ended before, or it is not (NULL): its leases wait for it
 * or are lost with it, and no tenant is charged for them meanwhile. */
BH_MUST_USE bh_rc bh_inventory_node(struct bh_core *core, bh_node_id node, const struct bh_node_offer *offer,
                                    struct bh_err *err);

/* No node is connected: each that the engine believes up is down since then (engine time; 0: now). */
BH_MUST_USE bh_rc bh_inventory_lose_all(struct bh_core *core, bh_ns since_ns, struct bh_err *err);

/* GPUs in a sample: one that was lost since the inventory is fenced.  None is unfenced
 * before the next inventory. */
BH_MUST_USE bh_rc bh_inventory_sampled(struct bh_core *core, bh_node_id node, const struct bh_list *gpus,
                                       struct bh_err *err);

/* Every partition and lease that the engine knows on the node, for KEEP. */
void bh_inventory_keep(const struct bh_core *core, bh_node_id node, struct bh_arena *arena,
                       struct bh_msg_retain *ret_keep);

#endif
