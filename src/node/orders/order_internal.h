#ifndef BH_NODE_ORDERS_ORDER_INTERNAL_H
#define BH_NODE_ORDERS_ORDER_INTERNAL_H

#include "node/job/order_answer.h"
#include "node/orders/order.h"
#include "node/orders/pending_orders.h"

/* What order.c and the test of planted faults know of the orders under way. */

struct bh_orders {
    struct bh_node *node;
    struct bh_pending_orders waiting;
    uint32_t count; /* of those that are accepted and not performed yet */
    struct bh_order_pending pending[BH_ORDERS_BATCH_MAX];
};

#endif
