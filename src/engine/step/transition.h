#ifndef BH_ENGINE_STEP_TRANSITION_H
#define BH_ENGINE_STEP_TRANSITION_H

#include "engine/state/work_internal.h"

/* What an admitted event changes by itself, before anything is decided. */
void bh_transition(struct work *work, const struct bh_event *event);

#endif
