#ifndef BH_FUZZ_WIRE_CHECK_H
#define BH_FUZZ_WIRE_CHECK_H

#include "base/assert.h"
#include "tests/fuzz/fuzz.h"
#include "wire/fill_test.h"
#include "wire/frame.h"
#include "wire/message.h"

/* Take any bytes for a stream of frames.  What decodes must encode to the very bytes
 * it came from: there is one way to say a thing. */

enum { WIRE_CHECK_ARENA = 8 << 20 };

static inline void
wire_check_frame(const struct bh_frame *frame, const struct bh_fields *fields)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(WIRE_CHECK_ARENA);
    unsigned char *message = wire_fill_alloc(arena, fields->size);
    struct bh_err err = { 0 };
    struct bh_buf out;

    if (bh_frame_decode(frame, fields, message, arena, &err) != BH_OK) {
        BH_ASSERT(err.rc == BH_INVALID || err.rc == BH_FULL);
        BH_ASSERT(err.msg[0]);
        return;
    }
    bh_buf_init(&out, BH_FRAME_MAX);
    bh_frame_encode(&out, frame->number, fields, message);
    BH_ASSERT(!out.overflow);
    BH_ASSERT(out.length == frame->length + BH_FRAME_HEADER);
    BH_ASSERT(memcmp(out.bytes + BH_FRAME_HEADER, frame->payload, frame->length) == 0);
    bh_buf_fini(&out);
}

/* As they are, then each frame with our version: seeds of an older one shall not end at the
 * header. */
static inline void
wire_check_stream(const uint8_t *data, size_t size, const struct bh_fields *(*lookup)(uint32_t number))
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(size + WIRE_CHECK_ARENA);
    char *bytes = bh_arena_alloc(arena, size + 1);
    struct bh_frame frame;
    struct bh_err err;
    size_t used;

    memcpy(bytes, data, size);
    (void)!bh_frame_next(bytes, size, &frame, &used, &err);
    while (size >= BH_FRAME_HEADER) {
        bytes[6] = BH_WIRE_VERSION;
        bytes[7] = 0;
        if (bh_frame_next(bytes, size, &frame, &used, &err) != BH_OK)
            break;
        const struct bh_fields *fields = lookup(frame.number);

        BH_ASSERT(used >= BH_FRAME_HEADER && used <= size);
        BH_ASSERT(frame.payload + frame.length == bytes + used);
        if (fields)
            wire_check_frame(&frame, fields);
        bytes += used;
        size -= used;
    }
}

#endif
