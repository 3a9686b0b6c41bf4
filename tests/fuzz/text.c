/* Any bytes as text: what JSON writing makes of them can be read back, messages made
 * of them are clean, base 64 gives them back. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/slice.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

static bool
is_utf8(const char *text, size_t length)
{
    while (length > 0) {
        size_t bytes = bh_utf8_step(text, length);

        if (bytes == 0)
            return false;
        text += bytes;
        length -= bytes;
    }
    return true;
}

/* Both readers see the text that was written; good UTF-8 comes back unchanged. */
static void
check_json(const char *text, size_t length)
{
    BH_AUTO(bh_json_free) struct bh_json *parsed = NULL;
    struct bh_buf json;
    struct bh_err err;
    char *again = malloc(3 * length + 1); /* U+FFFD has three bytes */
    const char *read;

    BH_ASSERT(again);
    bh_buf_init(&json, 6 * length + 16);
    bh_buf_putc(&json, '[');
    bh_json_put_strn(&json, text, length);
    bh_buf_putc(&json, ']');
    if (!memchr(text, '\0', length)) {
        BH_ASSERT(bh_json_parse(json.bytes, json.length, &parsed, &err) == BH_OK);
        read = bh_json_text(bh_json_at(bh_json_root(parsed), 0), NULL);
        BH_ASSERT(bh_slice_str((struct bh_slice){ json.bytes + 1, json.length - 2 }, again, 3 * length + 1));
        BH_ASSERT(strcmp(again, read) == 0);
        BH_ASSERT(!is_utf8(text, length) || (strlen(read) == length && memcmp(read, text, length) == 0));
    }
    bh_buf_fini(&json);
    free(again);
}

static void
check_message(const char *text, size_t length)
{
    struct bh_err err;

    bh_err_set(&err, BH_INVALID, "\"%.*s\" is bad", (int)length, text);
    BH_ASSERT(is_utf8(err.msg, strlen(err.msg)));
    for (const char *c = err.msg; *c; c++)
        BH_ASSERT((unsigned char)*c >= 0x20 && *c != 0x7f);
}

/* Encoding is undone by decoding, and what decodes has only one encoding. */
static void
check_base64(const char *text, size_t length)
{
    struct bh_buf encoded, back;

    bh_buf_init(&encoded, 2 * length + 8);
    bh_buf_init(&back, length + 8);
    bh_base64_encode(&encoded, text, length);
    BH_ASSERT(bh_base64_decode(&back, encoded.bytes, encoded.length));
    BH_ASSERT(back.length == length && (!length || memcmp(back.bytes, text, length) == 0));
    bh_buf_clear(&encoded);
    bh_buf_clear(&back);
    if (bh_base64_decode(&back, text, length)) {
        bh_base64_encode(&encoded, back.bytes, back.length);
        BH_ASSERT(encoded.length == length);
        BH_ASSERT(!length || memcmp(encoded.bytes, text, length) == 0);
    }
    bh_buf_fini(&encoded);
    bh_buf_fini(&back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";

    if (size > 1 << 16)
        return 0;
    check_json(text, size);
    check_message(text, size);
    check_base64(text, size);
    return 0;
}
