#ifndef BH_ENGINE_STEP_APPLY_H
#define BH_ENGINE_STEP_APPLY_H

#include "engine/state/work_internal.h"

/* Carry out a decision: just made, or read from the journal.  The same code, so that
 * replay gives the same state.  BH_CONFLICT when it does not fit the state. */
BH_MUST_USE bh_rc bh_apply(struct work *work, const struct bh_decision *decision);

#endif
