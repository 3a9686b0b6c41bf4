#ifndef BH_NODE_JOB_ORDER_COPY_H
#define BH_NODE_JOB_ORDER_COPY_H

#include "base/arena.h"
#include "base/buf.h"
#include "wire/message.h"

/* An order that is performed later than it came: its sender does not keep its texts. */
struct bh_order_copy {
    uint32_t number; /* of the message */
    struct bh_buf frame;
};

enum { BH_ORDER_COPY_BYTES_MAX = 16 << 20 };

/* Keep a copy of the order; release it with bh_order_copy_fini, on failure too.  BH_FULL: it is too
 * long. */
BH_MUST_USE bh_rc bh_order_copy_init(struct bh_order_copy *copy, uint32_t number, const void *message,
                                     struct bh_err *err);
void bh_order_copy_fini(struct bh_order_copy *copy);

/* The order, with its texts in `arena`, which has room for BH_ORDER_COPY_BYTES_MAX. */
void *bh_order_copy_message(const struct bh_order_copy *copy, struct bh_arena *arena);

#endif
