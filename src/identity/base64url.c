#include "identity/base64url.h"

#include <stdint.h>

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void
bh_base64url_encode(struct bh_buf *out, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < length; i += 3) {
        size_t count = length - i < 3 ? length - i : 3;
        uint32_t group = 0;

        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < count ? byte[i + k] : 0u);
        for (size_t k = 0; k <= count; k++)
            bh_buf_putc(out, alphabet[group >> (18 - 6 * k) & 63]);
    }
}

static int
digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '-')
        return 62;
    return c == '_' ? 63 : -1;
}

/* One group of 2 to 4 characters. */
static bool
decode_group(struct bh_buf *out, const char *text, size_t digits)
{
    uint32_t group = 0;

    for (size_t k = 0; k < 4; k++) {
        int value = k < digits ? digit_value(text[k]) : 0;

        if (value < 0)
            return false;
        group = group << 6 | (uint32_t)value;
    }
    if (group & (0xffffffu >> (8 * (digits - 1))))
        return false;
    for (size_t k = 0; k + 1 < digits; k++)
        bh_buf_putc(out, (char)(unsigned char)(group >> (16 - 8 * k)));
    return !out->overflow;
}

bool
bh_base64url_decode(struct bh_buf *out, const char *text, size_t length)
{
    size_t start = out->length;

    if (length % 4 == 1)
        return false;
    for (size_t i = 0; i < length; i += 4) {
        if (!decode_group(out, text + i, length - i < 4 ? length - i : 4)) {
            out->length = start;
            return false;
        }
    }
    return true;
}
