#ifndef BH_DAEMON_OWNER_DEFRAGGER_H
#define BH_DAEMON_OWNER_DEFRAGGER_H

#include "api/request/owner.h"

/* Where the site file says defrag: on: look for a plan of moves, play it on copies, and have
 * the owner carry it out where that bears it out.  `self` is a struct bh_owner; this is to the
 * owner as any worker is, and what it asks for is recorded as the system's. */
void bh_defragger_run(void *self);

#endif
