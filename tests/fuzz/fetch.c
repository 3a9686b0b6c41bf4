/* What reaches the two ends of bulkhead-fetch's socket, and what a server's header and a
 * person's option hold: no bytes do harm. */
#include "fetch/address.h"
#include "fetch/cache_control.h"
#include "fetch/message.h"
#include "tests/fuzz/wire_check.h"

static void
check_block(const uint8_t *data, size_t size)
{
    struct bh_block block = { .bits = 999 };
    struct bh_err err;
    char text[64];

    if (size >= sizeof text)
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    if (bh_block_parse(text, &block, &err) == BH_OK)
        BH_ASSERT(block.bits <= 128);
    else
        BH_ASSERT(err.rc == BH_INVALID && block.bits == 999);
}

/* More directives never make an answer last longer. */
static void
check_age(const uint8_t *data, size_t size)
{
    static const char more[] = ",max-age=60";
    uint32_t age = bh_cache_control_max_age((const char *)data, size), both;
    struct bh_buf text;

    bh_buf_init(&text, size + sizeof more);
    bh_buf_put(&text, data, size);
    bh_buf_puts(&text, more);
    both = bh_cache_control_max_age(text.bytes, text.length);
    BH_ASSERT(both <= 60 && (age == 0 || both <= age));
    bh_buf_fini(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wire_check_stream(data, size, bh_fetch_message_fields);
    check_block(data, size);
    check_age(data, size);
    return 0;
}
