#ifndef BH_ENGINE_READ_WHY_H
#define BH_ENGINE_READ_WHY_H

#include "engine/read/view.h"

/* bh_engine_why of engine/read/view.h: one dominant reason with its operands. */

#endif
