#ifndef BH_NODE_PARTITION_HEALTH_H
#define BH_NODE_PARTITION_HEALTH_H

#include "node/core/node.h"

/* What this node reports of its GPUs' health: XIDs as they come, changes for the worse of what it reads of
 * each GPU every few seconds, GPUs that stop answering and that answer again.  Events from a time without a
 * daemon are reported to the next one. */
/* A daemon is connected and has the inventory: report what it missed, and each GPU at the next reading. */
void bh_health_connected(struct bh_node *node);

/* Faults that the event child has seen since the last call. */
void bh_health_events(struct bh_node *node);

/* A call about this GPU was given up: it hangs until it answers again.  A child that was
 * killed is no fault of the GPU's. */
void bh_health_hung(struct bh_node *node, const char *gpu, const struct bh_err *err);

/* Have the health of GPUs read when it is due; when it is next (monotonic). */
bh_ns bh_health_tick(struct bh_node *node, bh_ns now);

/* What was read of that GPU's health; NULL: nothing, for what `err` says. */
void bh_health_found(struct bh_node *node, const char *gpu, const struct bh_device_health *found,
                     const struct bh_err *err);

/* Look at one GPU now.  Results of the device port's health. */
BH_MUST_USE bh_rc bh_health_read(struct bh_node *node, const char *gpu, struct bh_device_health *ret_health,
                                 struct bh_err *err);

#endif
