/* Launching. */
#ifndef BH_SIM_BURN_WORK_H
#define BH_SIM_BURN_WORK_H

#include "sim/burn/burn.h"

/* How often the kernel's loop goes round in a millisecond. */
uint64_t bh_burn_measure(struct burn *burn);

/* Count what has ended by now.  The context is current. */
void bh_burn_note(struct burn *burn);

/* Free what threads left that have ended. */
void bh_burn_forget(struct burn *burn);

/* The body of a thread that launches until the end; `self` is the struct burn. */
void *bh_burn_work(void *self);

#endif
