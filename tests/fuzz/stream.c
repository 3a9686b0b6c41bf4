/* Frames of interactive streams: no bytes of either end do harm, and what is taken is written
 * again as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "wire/stream.h"

static void
read_all(const char *bytes, size_t size, enum bh_stream_from from)
{
    static char again[BH_STREAM_FRAME_MAX];
    struct bh_stream_frame frame;
    struct bh_err err;

    while (bh_stream_next(bytes, size, from, &frame, &err) == BH_OK) {
        if (frame.size < BH_STREAM_HEADER || frame.size > size || bh_stream_put(again, &frame) != frame.size
            || memcmp(again, bytes, frame.size) != 0)
            abort();
        bytes += frame.size;
        size -= frame.size;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    read_all((const char *)data + 1, size - 1, data[0] & 1 ? BH_STREAM_NODE : BH_STREAM_CLIENT);
    return 0;
}
