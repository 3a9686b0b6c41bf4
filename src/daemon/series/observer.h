#ifndef BH_DAEMON_SERIES_OBSERVER_H
#define BH_DAEMON_SERIES_OBSERVER_H

#include "api/request/owner.h"
#include "daemon/series/observation.h"

/* What has to be remembered from one moment to the next: the reports of nodes, so that one that is repeated
 * is not a sample for ever, and the CPU time of leases. */
struct bh_observer;
BH_MUST_USE struct bh_observer *bh_observer_new(void);
void bh_observer_free(struct bh_observer *observer);

/* Look: asks the owner a few short questions.  `monotonic_ns` is that clock's now.  Results of
 * bh_owner_ops.ask. */
BH_MUST_USE bh_rc bh_observer_observe(struct bh_observer *observer, const struct bh_owner *owner,
                                      uint64_t monotonic_ns, struct bh_observation *ret_observation,
                                      struct bh_err *err);

#endif
