#ifndef BH_ENGINE_PLACEMENT_SHORTCUT_H
#define BH_ENGINE_PLACEMENT_SHORTCUT_H

#include "engine/placement/placement.h"

/* Places without a look at every node: whole GPUs by the packing index (engine/gpu/node_index.h),
 * partitions by groups of GPUs that stand alike.
 *
 * A shortcut knows what stands where, not boundaries, links, or room that is kept for others;
 * what it finds is tried as any place is, and where that fails all nodes are looked at. */

/* As bh_placement_find: a place that costs jobs to come no more than what that finds, and on whole
 * GPUs the same; of equal places it may be another.  The index is to have caught up. */
bool bh_shortcut_find(struct bh_engine *engine, const struct bh_search *search, const struct bh_need *need,
                      struct bh_plan *ret_plan);

#endif
