#ifndef BH_ENGINE_GPU_CORDON_H
#define BH_ENGINE_GPU_CORDON_H

#include "engine/state/work_internal.h"

/* What operators say of new work on a GPU or on all of a node, beside the site file: no new
 * work, no new work until it is empty, or no job at all.  It stays until they say otherwise. */
void bh_cordon_set(struct work *work, const struct bh_ev_cordon *cordon);

/* Whether it can be: BH_RANGE, BH_NOT_FOUND, BH_CONFLICT (a reset or a test of the GPU whose
 * fault is to be cleared is under way). */
BH_MUST_USE bh_rc bh_cordon_check(const struct bh_engine *engine, const struct bh_ev_cordon *cordon);

#endif
