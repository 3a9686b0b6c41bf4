#include "wire/stream.h"

#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/utf8.h"

enum { SIGNALS_MAX = 64 };

/* What may stand in a frame of each kind. */
static const struct {
    bool known;
    enum bh_stream_from from;
    size_t least, most;
} kinds[BH_STREAM_KINDS] = {
    [BH_STREAM_STDIN] = { true, BH_STREAM_CLIENT, 0, BH_STREAM_PAYLOAD_MAX },
    [BH_STREAM_RESIZE] = { true, BH_STREAM_CLIENT, 4, 4 },
    [BH_STREAM_SIGNAL] = { true, BH_STREAM_CLIENT, 1, 1 },
    [BH_STREAM_LEAVE] = { true, BH_STREAM_CLIENT, 0, 0 },
    [BH_STREAM_STDOUT] = { true, BH_STREAM_NODE, 0, BH_STREAM_PAYLOAD_MAX },
    [BH_STREAM_STDERR] = { true, BH_STREAM_NODE, 0, BH_STREAM_PAYLOAD_MAX },
    [BH_STREAM_READY] = { true, BH_STREAM_NODE, 5, 5 },
    [BH_STREAM_CREDIT_MORE] = { true, BH_STREAM_NODE, 4, 4 },
    [BH_STREAM_EXIT] = { true, BH_STREAM_NODE, 1, 1 },
    [BH_STREAM_ERROR] = { true, BH_STREAM_NODE, 1, 1 + BH_STREAM_WHY_MAX },
};

static void
stream_put_number(char *out, uint32_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (char)(number >> (8 * i) & 0xff);
}

static uint32_t
stream_get_number(const char *bytes, size_t size)
{
    uint32_t number = 0;

    for (size_t i = 0; i < size; i++)
        number |= (uint32_t)(unsigned char)bytes[i] << (8 * i);
    return number;
}

/* The payload's fixed part; its size. */
static size_t
stream_put_fixed(char *out, const struct bh_stream_frame *frame)
{
    switch (frame->kind) {
    case BH_STREAM_RESIZE:
        stream_put_number(out, frame->rows, 2);
        stream_put_number(out + 2, frame->columns, 2);
        return 4;
    case BH_STREAM_READY:
        stream_put_number(out, frame->number, 4);
        stream_put_number(out + 4, frame->flags, 1);
        return 5;
    case BH_STREAM_CREDIT_MORE:
        stream_put_number(out, frame->number, 4);
        return 4;
    case BH_STREAM_SIGNAL:
    case BH_STREAM_EXIT:
    case BH_STREAM_ERROR:
        stream_put_number(out, frame->number, 1);
        return 1;
    case BH_STREAM_STDIN:
    case BH_STREAM_LEAVE:
    case BH_STREAM_STDOUT:
    case BH_STREAM_STDERR:
    case BH_STREAM_KINDS:
        return 0;
    }
    return 0;
}

size_t
bh_stream_put(char *out, const struct bh_stream_frame *frame)
{
    size_t size = stream_put_fixed(out + BH_STREAM_HEADER, frame);

    BH_ASSERT((unsigned)frame->kind < BH_STREAM_KINDS && kinds[frame->kind].known);
    if (size == 0 || frame->kind == BH_STREAM_ERROR) {
        BH_ASSERT(frame->length <= kinds[frame->kind].most - size);
        if (frame->length > 0)
            memcpy(out + BH_STREAM_HEADER + size, frame->bytes, frame->length);
        size += frame->length;
    }
    stream_put_number(out, (uint32_t)frame->kind, 1);
    stream_put_number(out + 1, (uint32_t)size, 3);
    return BH_STREAM_HEADER + size;
}

static bool
stream_is_text(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t step = bytes[at] ? bh_utf8_step(bytes + at, length - at) : 0;

        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

/* Whether the numbers and texts of a frame of the right length are in their range. */
static bool
stream_get_payload(const char *bytes, size_t length, struct bh_stream_frame *frame)
{
    switch (frame->kind) {
    case BH_STREAM_RESIZE:
        frame->rows = (uint16_t)stream_get_number(bytes, 2);
        frame->columns = (uint16_t)stream_get_number(bytes + 2, 2);
        return frame->rows > 0 && frame->columns > 0;
    case BH_STREAM_SIGNAL:
        frame->number = stream_get_number(bytes, 1);
        return frame->number >= 1 && frame->number <= SIGNALS_MAX;
    case BH_STREAM_READY:
        frame->number = stream_get_number(bytes, 4);
        frame->flags = (uint8_t)stream_get_number(bytes + 4, 1);
        return frame->flags <= (BH_STREAM_TTY | BH_STREAM_WRITER);
    case BH_STREAM_CREDIT_MORE:
        frame->number = stream_get_number(bytes, 4);
        return frame->number > 0;
    case BH_STREAM_EXIT:
        frame->number = stream_get_number(bytes, 1);
        return true;
    case BH_STREAM_ERROR:
        frame->number = stream_get_number(bytes, 1);
        frame->bytes = bytes + 1;
        frame->length = length - 1;
        return frame->number > BH_OK && frame->number <= BH_BUG && stream_is_text(bytes + 1, length - 1);
    case BH_STREAM_STDIN:
    case BH_STREAM_LEAVE:
    case BH_STREAM_STDOUT:
    case BH_STREAM_STDERR:
    case BH_STREAM_KINDS:
        frame->bytes = bytes;
        frame->length = length;
        return true;
    }
    return false;
}

bh_rc
bh_stream_next(const char *bytes, size_t length, enum bh_stream_from from, struct bh_stream_frame *ret_frame,
               struct bh_err *err)
{
    struct bh_stream_frame frame = { 0 };
    size_t payload;
    uint32_t kind;

    if (length == 0)
        return bh_err_set(err, BH_NOT_FOUND, "no frame yet");
    kind = stream_get_number(bytes, 1);
    if (kind >= BH_STREAM_KINDS || !kinds[kind].known || kinds[kind].from != from)
        return bh_err_set(err, BH_INVALID, "a stream frame of kind %u is not for this side", kind);
    if (length < BH_STREAM_HEADER)
        return bh_err_set(err, BH_NOT_FOUND, "no whole frame yet");
    payload = stream_get_number(bytes + 1, 3);
    if (payload < kinds[kind].least || payload > kinds[kind].most)
        return bh_err_set(err, BH_INVALID, "a stream frame of kind %u has %zu bytes", kind, payload);
    if (length - BH_STREAM_HEADER < payload)
        return bh_err_set(err, BH_NOT_FOUND, "no whole frame yet");
    frame.kind = (enum bh_stream_kind)kind;
    if (!stream_get_payload(bytes + BH_STREAM_HEADER, payload, &frame))
        return bh_err_set(err, BH_INVALID, "a stream frame of kind %u has a wrong value", kind);
    frame.size = BH_STREAM_HEADER + payload;
    *ret_frame = frame;
    return BH_OK;
}
