/* Server-sent events as the CLI reads them: in which partitions they come changes nothing, and no
 * event is larger than the limit.
 *
 * The first byte says how large the partitions are. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/client/sse.h"
#include "tests/fuzz/fuzz.h"

enum { INPUT_MAX = 1 << 16 };

static bool
take(void *self, const char *event, const char *text, size_t length)
{
    struct bh_buf *log = self;

    BH_ASSERT(length <= BH_SSE_EVENT_MAX && text[length] == '\0');
    bh_buf_printf(log, "<%s:%zu:", event, length);
    bh_buf_put(log, text, length);
    bh_buf_putc(log, '>');
    return true;
}

static bool
parse(struct bh_buf *log, const char *bytes, size_t size, size_t step)
{
    struct bh_sse sse;
    bool more = true;

    bh_sse_init(&sse, take, log);
    for (size_t at = 0; at < size && more; at += step)
        more = bh_sse_feed(&sse, bytes + at, size - at < step ? size - at : step);
    bh_sse_fini(&sse);
    return more;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_buf whole, partitions;

    if (size < 1 || size > INPUT_MAX)
        return 0;
    bh_buf_init(&whole, 64 * INPUT_MAX);
    bh_buf_init(&partitions, 64 * INPUT_MAX);
    BH_ASSERT(parse(&whole, (const char *)data + 1, size - 1, size)
              == parse(&partitions, (const char *)data + 1, size - 1, (size_t)data[0] + 1));
    BH_ASSERT(whole.length == partitions.length
              && (whole.length == 0 || memcmp(whole.bytes, partitions.bytes, whole.length) == 0));
    bh_buf_fini(&whole);
    bh_buf_fini(&partitions);
    return 0;
}
