#ifndef BH_ENGINE_PLACEMENT_UNSCHEDULABLE_H
#define BH_ENGINE_PLACEMENT_UNSCHEDULABLE_H

#include "engine/state/reason.h"
#include "engine/state/state_internal.h"

/* Why a GPU that could serve a job gets no new work, or not in all of its places. */

/* The reason's code; BH_REASON_NONE: it gets work.  Of several that hold, the one that stays
 * longest: an operator's word counts when the GPU is well again, too. */
enum bh_reason_code bh_unschedulable_reason(const struct bh_engine *engine, const struct gpu *gpu);

/* Of two codes for two GPUs the one that is likely to end first; NONE ends never. */
enum bh_reason_code bh_unschedulable_first(enum bh_reason_code a, enum bh_reason_code b);

#endif
