#ifndef BH_ENGINE_STEP_H
#define BH_ENGINE_STEP_H

#include "engine/engine.h"

/* The step itself: bh_engine_step and bh_engine_replay of engine/engine.h, and what
 * a step leaves to be done: outstanding effects, the next tick. */

#endif
