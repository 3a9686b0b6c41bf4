#include "node/job/order_copy.h"

#include "base/assert.h"
#include "wire/frame.h"

bh_rc
bh_order_copy_init(struct bh_order_copy *copy, uint32_t number, const void *message, struct bh_err *err)
{
    BH_ASSERT(message && bh_message_fields(number));
    copy->number = number;
    bh_buf_init(&copy->frame, BH_ORDER_COPY_BYTES_MAX);
    bh_frame_encode(&copy->frame, number, bh_message_fields(number), message);
    return copy->frame.overflow ? bh_err_set(err, BH_FULL, "the order is too long") : BH_OK;
}

void
bh_order_copy_fini(struct bh_order_copy *copy)
{
    bh_buf_fini(&copy->frame);
}

/* A copy that this node wrote can be read. */
void *
bh_order_copy_message(const struct bh_order_copy *copy, struct bh_arena *arena)
{
    const struct bh_fields *fields = bh_message_fields(copy->number);
    void *message = bh_arena_alloc(arena, fields->size);
    struct bh_frame frame;
    struct bh_err ignored;
    size_t used;

    BH_ASSERT(message && copy->frame.length > 0);
    BH_ASSERT(bh_frame_next(copy->frame.bytes, copy->frame.length, &frame, &used, &ignored) == BH_OK);
    BH_ASSERT(bh_frame_decode(&frame, fields, message, arena, &ignored) == BH_OK);
    return message;
}
