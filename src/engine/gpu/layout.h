#ifndef BH_ENGINE_GPU_LAYOUT_H
#define BH_ENGINE_GPU_LAYOUT_H

#include "engine/state/work_internal.h"

/* Which partitions shall stand ready on a GPU, as an operator declares it (`bulkhead layout`).
 *
 * Partitions that are missing are carved for no tenant yet, like those of engine/placement/warm.h, as soon as
 * no lease and no kept room is in their way; idle ones that are not wanted go while the change
 * is being made, and later only where they are in the way.  A decided in use is never touched.
 * Nothing is kept free for what is declared: a job that needs another shape may have it, and
 * when it is gone the declared one is made again.
 *
 * All GPUs of one change belong together: where a carve or a destroy for it fails, all of them
 * go back to what stood or was declared before. */

/* Declare it; `before` becomes what was declared, or else what stands. */
void bh_layout_set(struct work *work, const struct bh_ev_layout *gpu_layout);

/* BH_NOT_FOUND: no such GPU.  BH_RANGE: partitions that the GPU cannot hold together, or no mode,
 * or no number that follows. */
BH_MUST_USE bh_rc bh_layout_admit(const struct bh_engine *engine, const struct bh_ev_layout *gpu_layout,
                                  struct bh_reason *ret_why);

/* The next decided to clear or carve for what is declared. */
bool bh_layout_decide(const struct work *work, struct bh_decision *ret_decision);

/* Carry out a CLEAR.  BH_CONFLICT: it is no idle partition, or may not go now. */
BH_MUST_USE bh_rc bh_layout_clear(struct work *work, const struct bh_decision *decision);

/* Whether what is declared for the GPU names the partition. */
bool bh_layout_contains(const struct bh_engine *engine, uint32_t gpu, const struct bh_partition *decided);

/* A partition for no tenant could not be carved, or one destroyed.  False: it was not for what is
 * declared. */
bool bh_layout_failed(struct work *work, uint32_t partition, uint32_t rc);

/* Something came to stand, or went: the change may be complete with it. */
void bh_layout_update(struct bh_engine *engine, uint32_t gpu);

/* A tick has come; when the next one is needed, UINT64_MAX: not for this. */
void bh_layout_tick(struct bh_engine *engine);
uint64_t bh_layout_retry_ns(const struct bh_engine *engine);

/* For bh_engine_check: what is wrong, and on which GPU (id); NULL: nothing. */
const char *bh_layout_check(const struct bh_engine *engine, uint64_t *ret_gpu);

#endif
