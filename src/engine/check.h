#ifndef BH_ENGINE_CHECK_H
#define BH_ENGINE_CHECK_H

#include "engine/engine.h"

/* bh_engine_check of engine/engine.h: every invariant, looked at from the outside:
 * sums are taken anew and compared with what the steps kept. */

#endif
