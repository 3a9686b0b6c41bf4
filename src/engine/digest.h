#ifndef BH_ENGINE_DIGEST_H
#define BH_ENGINE_DIGEST_H

#include "engine/engine.h"

/* bh_engine_digest of engine/engine.h: slots have no padding and free slots are
 * zero, so the bytes of the used part of each table are canonical as they stand. */

#endif
