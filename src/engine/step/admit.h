#ifndef BH_ENGINE_STEP_ADMIT_H
#define BH_ENGINE_STEP_ADMIT_H

#include "engine/state/state_internal.h"

/* Whether an event may be taken at all.  Nothing changes here, but that the table
 * which has no room is remembered for bh_engine_wanted.  Results as bh_engine_step. */
BH_MUST_USE bh_rc bh_admit(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why);

#endif
