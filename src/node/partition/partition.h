#ifndef BH_NODE_PARTITION_PARTITION_H
#define BH_NODE_PARTITION_PARTITION_H

#include "node/core/node.h"

/* Partitions that this node made: MIG instances and whole GPUs.  Only GPUs that node.conf allows are changed,
 * and only instances in the node's own journal are destroyed. */

/* Read the GPUs anew.  BH_UNAVAILABLE: no driver; the inventory is then empty. */
BH_MUST_USE bh_rc bh_node_partition_scan(struct bh_node *node, struct bh_err *err);

/* Before a carve is noted as an order: would it be refused?  BH_DENIED, BH_NOT_FOUND,
 * BH_CONFLICT, BH_FULL. */
BH_MUST_USE bh_rc bh_node_partition_carve_check(struct bh_node *node, const struct bh_node_partition *wanted,
                                                struct bh_err *err);

/* BH_DENIED: node.conf does not let Bulkhead change this GPU. */
BH_MUST_USE bh_rc bh_node_partition_check_allowed(const struct bh_node *node, const char *gpu,
                                                  struct bh_err *err);

/* Whether it exists already: carved by the same order, before the node ended during the scrub that
 * follows. */
bool bh_node_partition_is_carved(const struct bh_node *node, const struct bh_node_partition *wanted);

/* Read the GPU's instances and write them into the order's note: the order is begun. */
BH_MUST_USE bh_rc bh_node_partition_begin(struct bh_node *node, struct bh_node_record *order,
                                          struct bh_err *err);

/* Make the partition of an order that was begun, and note it. */
BH_MUST_USE bh_rc bh_node_partition_carve(struct bh_node *node, const struct bh_node_record *order,
                                          struct bh_err *err);

/* Destroy the partition for a tenant (0: for none yet) and note that it is gone; BH_OK when it did not exist.
 * BH_CONFLICT: a job has it, processes use it, or node/placement/mig_change.h; BH_UNAVAILABLE: it is an
 * instance of a GPU that cannot be read, and stays noted. */
BH_MUST_USE bh_rc bh_node_partition_destroy(struct bh_node *node, uint64_t partition, uint32_t tenant,
                                            struct bh_err *err);

/* Whether the instance of an order that was begun exists, is not noted, and did not exist before: then note
 * it as the order's.  For a carve whose outcome is unknown. */
BH_MUST_USE bh_rc bh_node_partition_adopt(struct bh_node *node, const struct bh_node_record *order,
                                          bool *ret_found, struct bh_err *err);

/* After a scan at start, and of a GPU (NULL: all) that answers again: update the partitions that are noted,
 * and forget those that are gone.  Partitions of a GPU that cannot be read stay as they are. */
BH_MUST_USE bh_rc bh_node_partition_reconcile(struct bh_node *node, const char *gpu, struct bh_err *err);

/* Whether the GPU has instances that this node did not make. */
bool bh_node_partition_has_foreign(const struct bh_node *node, const char *gpu);

/* Whether this node made that instance, also when its destruction was interrupted. */
bool bh_node_partition_is_ours(const struct bh_node *node, const struct bh_device_instance *instance);

#endif
