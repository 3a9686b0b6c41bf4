#ifndef BH_DAEMON_OWNER_TICKER_H
#define BH_DAEMON_OWNER_TICKER_H

#include <stdint.h>

#include "base/err.h"

/* A thread that calls a function now and then, until it is stopped. */
struct bh_ticker;

/* Calls `turn(self)` every `interval_ns`, of the monotonic clock, the first time after one. */
BH_MUST_USE bh_rc bh_ticker_start(uint64_t interval_ns, void (*tick)(void *self), void *self,
                                  struct bh_ticker **ret_ticker, struct bh_err *err);

/* Wait for the turn in hand and end; NULL is fine. */
void bh_ticker_stop(struct bh_ticker *ticker);

#endif
