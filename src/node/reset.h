#ifndef BH_NODE_RESET_H
#define BH_NODE_RESET_H

#include "node/node.h"

/* Resetting a GPU, and looking whether it is well again. */

/* Reset the GPU by the program of node.conf, `PROGRAM --gpu-reset -i PCI`, which is
 * nvidia-smi: NVML has no call for it.  Whoever asks waits, at most gpu_reset_timeout_ms.
 * Pieces that stood on it are noted gone.
 *   BH_UNAVAILABLE  node.conf names no program, or it cannot be started
 *   BH_DENIED       node.conf does not let Bulkhead change this GPU
 *   BH_NOT_FOUND    this node never saw it
 *   BH_CONFLICT     a job, a process or an instance that is not ours is on it; or on another
 *                   GPU of an Ampere board with NVSwitch, whose GPUs are reset together
 *   BH_IO, BH_TIMEOUT  the program failed, or did not end */
BH_MUST_USE bh_rc bh_reset_run(struct bh_node *node, const char *gpu, struct bh_err *err);

/* Whether the GPU answers and wants nothing any more.  BH_IO, with what it wants; else as
 * the device port's health. */
BH_MUST_USE bh_rc bh_reset_test(struct bh_node *node, const char *gpu, struct bh_err *err);

#endif
