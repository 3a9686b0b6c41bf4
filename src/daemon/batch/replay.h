#ifndef BH_DAEMON_BATCH_REPLAY_H
#define BH_DAEMON_BATCH_REPLAY_H

#include "daemon/state/core.h"

/* Rebuild the state: the last usable snapshot, then every record after it, applied as
 * it was decided.  At each snapshot record the state must have the digest that was
 * recorded (BH_CONFLICT otherwise).  Names and site are read from the store. */
BH_MUST_USE bh_rc bh_replay(struct bh_core *core, struct bh_err *err);

#endif
