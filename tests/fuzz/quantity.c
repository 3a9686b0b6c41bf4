/* The number parsers: a refusal changes nothing and says why; what is accepted obeys
 * the laws of its unit. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/num.h"
#include "tests/fuzz/fuzz.h"

enum { UNTOUCHED = 0x5a5a, WHOLE = 4200 };

static void
check_refusal(uint64_t value, const struct bh_err *err)
{
    BH_ASSERT(value == UNTOUCHED);
    BH_ASSERT(err->rc == BH_INVALID || err->rc == BH_RANGE);
    BH_ASSERT(err->msg[0]);
}

/* An integer has one way to be written, and is as many bytes as it says. */
static void
check_u64(const char *text)
{
    char digits[32];
    struct bh_buf again;
    struct bh_err err = { 0 };
    uint64_t value = UNTOUCHED, bytes = 0;

    if (bh_parse_u64(text, &value, &err) != BH_OK) {
        check_refusal(value, &err);
        return;
    }
    bh_buf_init_fixed(&again, digits, sizeof digits);
    bh_buf_put_u64(&again, value);
    BH_ASSERT(strcmp(bh_buf_text(&again), text) == 0);
    BH_ASSERT(bh_parse_bytes(text, &bytes, &err) == BH_OK && bytes == value);
}

static void
check_u32(const char *text)
{
    struct bh_err err = { 0 };
    uint32_t value = UNTOUCHED;

    if (bh_parse_u32(text, 10, 1000, &value, &err) == BH_OK)
        BH_ASSERT(value >= 10 && value <= 1000);
    else
        check_refusal(value, &err);
}

static void
check_bytes(const char *text)
{
    struct bh_err err = { 0 };
    uint64_t value = UNTOUCHED;

    if (bh_parse_bytes(text, &value, &err) != BH_OK)
        check_refusal(value, &err);
    else if (strchr(text, 'i'))
        BH_ASSERT(value % 1024 == 0);
}

static void
check_span(const char *text)
{
    struct bh_err err = { 0 };
    uint64_t value = UNTOUCHED;

    if (bh_parse_span(text, &value, &err) != BH_OK)
        check_refusal(value, &err);
    else
        BH_ASSERT(value % (strstr(text, "ms") ? 1000000 : 1000000000) == 0);
}

/* Twice the whole has twice the parts, unless they overflow. */
static void
check_parts(const char *text)
{
    struct bh_err err = { 0 };
    uint64_t parts = UNTOUCHED, twice = 0;
    bh_rc rc = bh_parse_parts(text, WHOLE, &parts, &err);

    if (rc != BH_OK) {
        check_refusal(parts, &err);
        return;
    }
    rc = bh_parse_parts(text, 2 * WHOLE, &twice, &err);
    BH_ASSERT(rc == BH_RANGE || (rc == BH_OK && twice == 2 * parts));
}

static void
check_hex(const char *text, size_t length)
{
    unsigned char *bytes = malloc(length / 2 + 1);
    struct bh_buf again;

    BH_ASSERT(bytes);
    bh_buf_init(&again, length + 2);
    if (bh_parse_hex(text, bytes, length / 2)) {
        bh_buf_put_hex(&again, bytes, length / 2);
        BH_ASSERT(strcmp(bh_buf_text(&again), text) == 0);
    }
    bh_buf_fini(&again);
    free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_fuzz_text(data, size);

    check_u64(text);
    check_u32(text);
    check_bytes(text);
    check_span(text);
    check_parts(text);
    check_hex(text, strlen(text));
    free(text);
    return 0;
}
