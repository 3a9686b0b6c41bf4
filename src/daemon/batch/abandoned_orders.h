#ifndef BH_DAEMON_BATCH_ABANDONED_ORDERS_H
#define BH_DAEMON_BATCH_ABANDONED_ORDERS_H

#include "daemon/state/core.h"

/* Orders whose answer the engine does not wait for, or that never went out: each gets its outcome
 * in the log. */

/* A record of verb BH_RECORD_ORDER_ABANDONED for each order given before `before_ns` whose
 * answer the engine does not wait for. */
BH_MUST_USE bh_rc bh_abandoned_orders_record(struct bh_core *core, uint64_t before_ns, struct bh_err *err);

/* The same for orders of a record before `before_seq` whose answer would not be taken: none for
 * which `is_sent` holds.  When a node has reported what it did while no daemon was connected. */
BH_MUST_USE bh_rc bh_abandoned_orders_record_unsent(struct bh_core *core, uint64_t before_seq,
                                                    bool (*is_sent)(const void *self, uint64_t order),
                                                    const void *self, struct bh_err *err);

/* The same for one order, which was not sent: a start without access to its datasets. */
BH_MUST_USE bh_rc bh_abandoned_orders_withhold(struct bh_core *core, const struct bh_effect *effect,
                                               struct bh_err *err);

#endif
