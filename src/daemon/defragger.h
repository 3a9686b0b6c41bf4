#ifndef BH_DAEMON_DEFRAGGER_H
#define BH_DAEMON_DEFRAGGER_H

#include "api/owner.h"

/* A thread that, where the site file says defrag: on, looks for a plan of moves now and then,
 * plays it on copies, and has the owner carry it out where that bears it out.  It is to the
 * owner as any worker is, and what it asks for is recorded as the system's. */
struct bh_defragger;

/* Look every `interval_ns`, of the monotonic clock. */
BH_MUST_USE bh_rc bh_defragger_start(const struct bh_owner *owner, uint64_t interval_ns,
                                     struct bh_defragger **ret_defragger, struct bh_err *err);

/* Wait for the turn in hand and end; NULL is fine.  Before the owner is stopped, which may
 * be halted already. */
void bh_defragger_stop(struct bh_defragger *defragger);

#endif
