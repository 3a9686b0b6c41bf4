#include "node/kept.h"

#include "base/assert.h"
#include "wire/frame.h"

bh_rc
bh_kept_init(struct bh_kept *kept, uint32_t number, const void *message, struct bh_err *err)
{
    kept->number = number;
    bh_buf_init(&kept->frame, BH_KEPT_BYTES_MAX);
    bh_frame_encode(&kept->frame, number, bh_message_fields(number), message);
    return kept->frame.overflow ? bh_err_set(err, BH_FULL, "the order is too long") : BH_OK;
}

void
bh_kept_fini(struct bh_kept *kept)
{
    bh_buf_fini(&kept->frame);
}

/* An order of our own is readable. */
void *
bh_kept_message(const struct bh_kept *kept, struct bh_arena *arena)
{
    const struct bh_fields *fields = bh_message_fields(kept->number);
    void *message = bh_arena_alloc(arena, fields->size);
    struct bh_frame frame;
    struct bh_err broken;
    size_t used;

    BH_ASSERT(message);
    BH_ASSERT(bh_frame_next(kept->frame.bytes, kept->frame.length, &frame, &used, &broken)
              == BH_OK);
    BH_ASSERT(bh_frame_decode(&frame, fields, message, arena, &broken) == BH_OK);
    return message;
}
