#ifndef BH_NODE_ORDERS_PENDING_ORDERS_H
#define BH_NODE_ORDERS_PENDING_ORDERS_H

#include "node/core/node.h"
#include "node/job/order_copy.h"

/* Orders that were taken and have no outcome yet: something on their GPU must end first, a scrub
 * or a reset is under way for them, or the driver was busy.  In the order in which they came, so
 * that what is done to one GPU is done one after the other. */
struct bh_pending_order {
    uint64_t order;
    struct bh_order_copy copy;
    char gpu[BH_UUID_MAX]; /* that it changes; "": none is known */
    uint64_t start_of;     /* lease; 0: it is no START */
    bh_ns at;              /* monotonic; not to be tried before, unless what it waits for ends */
    bh_ns pause, until;    /* of one that the driver holds up: grows; when to give up, or 0 */
};

enum { BH_PENDING_ORDERS_MAX = 256 };

struct bh_pending_orders {
    struct bh_pending_order item[BH_PENDING_ORDERS_MAX];
    uint32_t count;
};

/* Asserts what holds of it between two calls. */
void bh_pending_orders_assert(const struct bh_pending_orders *list);

/* Put the order behind the others; NULL: there is no room. */
struct bh_pending_order *bh_pending_orders_add(struct bh_pending_orders *list, uint32_t number,
                                               const void *message, const char *gpu);
void bh_pending_orders_remove(struct bh_pending_orders *list, uint32_t at);
void bh_pending_orders_clear(struct bh_pending_orders *list);

/* The place of the lease's START, or `count`. */
uint32_t bh_pending_orders_find_start(const struct bh_pending_orders *list, uint64_t lease);

bool bh_pending_orders_has(const struct bh_pending_orders *list, uint64_t order);

/* Whether one of the first `before` changes that GPU. */
bool bh_pending_orders_is_behind(const struct bh_pending_orders *list, uint32_t before, const char *gpu);

#endif
