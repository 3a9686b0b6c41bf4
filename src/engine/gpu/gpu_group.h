#ifndef BH_ENGINE_GPU_GPU_GROUP_H
#define BH_ENGINE_GPU_GPU_GROUP_H

#include "engine/state/state_internal.h"

/* GPUs of one model on which the same partitions stand, in groups: what is best on one of them is
 * best on all.  A fleet of thousands has a few dozen groups.
 *
 * Groups are state, as is the order in them: the GPU that changed last comes first. */

/* The GPU (slot) gets new partitions of MIG, and stands as it does now; or it gets none. */
void bh_gpu_group_update(struct bh_engine *engine, uint32_t gpu, bool offered);

/* Whether every GPU that belongs to a group is in the right one, and no other; false:
 * `ret_gpu` (slot) is not. */
bool bh_gpu_group_check(const struct bh_engine *engine, uint32_t *ret_gpu);

#endif
