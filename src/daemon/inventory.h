#ifndef BH_DAEMON_INVENTORY_H
#define BH_DAEMON_INVENTORY_H

#include "daemon/core.h"
#include "wire/message.h"

/* What a node reports about itself, compared with what the engine believes: each
 * difference becomes one event. */

/* Whether the inventory can be taken at all.  BH_CONFLICT: a GPU in it belongs to a node
 * of another name. */
BH_MUST_USE bh_rc bh_inventory_check(const struct bh_core *core,
                                     const struct bh_msg_inventory *inventory,
                                     struct bh_err *err);

/* GPUs, pieces that are gone, and leases that the node has never heard of.  The
 * node's inventory names every lease it has, also ended ones not yet acknowledged. */
BH_MUST_USE bh_rc bh_inventory_take(struct bh_core *core, bh_node_id node,
                                    const struct bh_msg_inventory *inventory,
                                    struct bh_err *err);

/* The node is there, with the cores and memory of its inventory, or it is not (NULL): its
 * leases wait for it or are lost with it. */
BH_MUST_USE bh_rc bh_inventory_node(struct bh_core *core, bh_node_id node,
                                    const struct bh_msg_inventory *inventory,
                                    struct bh_err *err);

/* GPUs in a sample: one that was lost since the inventory is fenced.  None is unfenced
 * before the next inventory. */
BH_MUST_USE bh_rc bh_inventory_sampled(struct bh_core *core, bh_node_id node,
                                       const struct bh_list *gpus, struct bh_err *err);

/* Every piece and lease that the engine knows on the node, for KEEP. */
void bh_inventory_keep(const struct bh_core *core, bh_node_id node, struct bh_arena *arena,
                       struct bh_msg_keep *ret_keep);

#endif
