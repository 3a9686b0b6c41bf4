#ifndef BH_NODE_PARTITION_RESET_H
#define BH_NODE_PARTITION_RESET_H

#include "node/core/node.h"

/* Resetting a GPU, and checking whether it works again.
 *
 * A reset runs beside the node's loop, one at a time: the program reads every GPU and would be in the way of
 * another reset.  While it runs, no program of the node opens the GPU, and no lease gets a partition of it;
 * the others stay in use. */

BH_MUST_USE struct bh_reset *bh_reset_new(void);
void bh_reset_free(struct bh_reset *reset); /* NULL is fine; a program that runs is left alone */

/* Reset the GPU by the program of node.conf, `PROGRAM --gpu-reset -i PCI`, which is nvidia-smi: NVML has no
 * call for it.  BH_OK and `ret_waits`: there is no answer yet; ask again with the same order.  Its partitions
 * are noted gone.
 *   BH_UNAVAILABLE  node.conf names no program, it cannot be started, or the last one has not
 *                   gone, although it was killed
 *   BH_DENIED       node.conf does not let Bulkhead change this GPU
 *   BH_NOT_FOUND    this node never saw it
 *   BH_CONFLICT     a job, a scrub, a process or an instance that this node did not make is on it; or on
 *                   another GPU of an Ampere board with NVSwitch, whose GPUs are reset together
 *   BH_IO, BH_TIMEOUT  the program failed, or did not end within gpu_reset_timeout_ms */
BH_MUST_USE bh_rc bh_reset_run(struct bh_node *node, const struct bh_msg_gpu_order *order, bool *ret_waits,
                               struct bh_err *err);

/* Look at the program that runs; the monotonic time of the next thing to do, or 0. */
bh_ns bh_reset_tick(struct bh_node *node, bh_ns now);

/* For poll: readable when it has ended; -1: none runs. */
int bh_reset_fd(const struct bh_node *node);

/* Whether the program runs for that order. */
bool bh_reset_runs(const struct bh_node *node, uint64_t order);

/* Whether the GPU answers and wants no further reset or reboot.  BH_IO, with what it wants; else as the
 * device port's health. */
BH_MUST_USE bh_rc bh_reset_test(struct bh_node *node, const char *gpu, struct bh_err *err);

#endif
