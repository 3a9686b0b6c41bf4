#ifndef BH_DAEMON_JOURNAL_OPEN_ORDERS_H
#define BH_DAEMON_JOURNAL_OPEN_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"

/* Orders that stand in the log without an outcome, as the log's records go by.
 *
 * The engine stops waiting for an answer when its lease was cancelled, its GPU or node lost;
 * such an order gets the outcome BH_RECORD_ORDER_ABANDONED (daemon/batch/abandoned_orders.h), so that the
 * log says of each order what became of it.  Owner thread only. */
struct bh_open_orders {
    struct bh_open_order {
        uint64_t number;   /* as in a record's "order" */
        uint64_t since_ns; /* when it was given; or when a snapshot had it */
        bool done;         /* it has its outcome, and is taken out when another is added */
    } * items;             /* by number */
    uint32_t count, capacity, done;
};

/* The next record of the log: what it orders, and what it answers. */
void bh_open_orders_read(struct bh_open_orders *orders, const struct bh_record *record);

/* An order of an earlier record, which a snapshot stands for; in any order. */
void bh_open_orders_add(struct bh_open_orders *orders, uint64_t number, uint64_t since_ns);

/* Forget all; before a replay. */
void bh_open_orders_reset(struct bh_open_orders *orders);
void bh_open_orders_fini(struct bh_open_orders *orders);

#endif
