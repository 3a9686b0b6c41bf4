/* Launching. */
#ifndef BH_BURN_WORK_H
#define BH_BURN_WORK_H

#include "burn/burn.h"

/* How often the kernel's loop goes round in a millisecond. */
uint64_t bh_burn_measure(struct burn *burn);

/* The body of a thread that launches until the end; `self` is the struct burn. */
void *bh_burn_work(void *self);

#endif
