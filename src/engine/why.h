#ifndef BH_ENGINE_WHY_H
#define BH_ENGINE_WHY_H

#include "engine/view.h"

/* bh_engine_why of engine/view.h: one dominant reason with its operands. */

#endif
