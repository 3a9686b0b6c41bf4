/* Allocating and freeing. */
#ifndef BH_SIM_BURN_STORM_H
#define BH_SIM_BURN_STORM_H

#include "sim/burn/burn.h"

/* The body of a thread that does so until the end; `self` is the struct burn. */
void *bh_burn_storm(void *self);

#endif
