#ifndef BH_NODE_KEPT_H
#define BH_NODE_KEPT_H

#include "base/arena.h"
#include "base/buf.h"
#include "wire/message.h"

/* An order that is performed later than it came: whoever sent it does not keep its texts. */
struct bh_kept {
    uint32_t number; /* of the message */
    struct bh_buf frame;
};

enum { BH_KEPT_BYTES_MAX = 16 << 20 };

/* Keep a copy of the order; release it with bh_kept_fini, on failure too.  BH_FULL: it is too
 * long. */
BH_MUST_USE bh_rc bh_kept_init(struct bh_kept *kept, uint32_t number, const void *message,
                               struct bh_err *err);
void bh_kept_fini(struct bh_kept *kept);

/* The order, with its texts in `arena`, which has room for BH_KEPT_BYTES_MAX. */
void *bh_kept_message(const struct bh_kept *kept, struct bh_arena *arena);

#endif
