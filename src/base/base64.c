#include "base/base64.h"

#include <stdint.h>

/* The last two characters of the alphabet, and whether groups are padded. */
struct flavour {
    char digit62, digit63;
    bool padded;
};

static const struct flavour standard = { '+', '/', true }, url = { '-', '_', false };

static char
digit_of(const struct flavour *flavour, uint32_t value)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    if (value < 62)
        return alphabet[value];
    return value == 62 ? flavour->digit62 : flavour->digit63;
}

static void
encode(const struct flavour *flavour, struct bh_buf *out, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < length; i += 3) {
        size_t count = length - i < 3 ? length - i : 3;
        uint32_t group = 0;
        char text[4];

        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < count ? byte[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            text[k] = k <= count ? digit_of(flavour, group >> (18 - 6 * k) & 63) : '=';
        bh_buf_put(out, text, flavour->padded ? sizeof text : count + 1);
    }
}

static int
digit_value(const struct flavour *flavour, char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == flavour->digit62)
        return 62;
    return c == flavour->digit63 ? 63 : -1;
}

/* One group of four characters, of which `digits` (2 to 4) stand for something. */
static bool
decode_group(const struct flavour *flavour, struct bh_buf *out, const char *text,
             size_t digits)
{
    unsigned char bytes[3];
    uint32_t group = 0;

    for (size_t k = 0; k < 4; k++) {
        int value = k < digits ? digit_value(flavour, text[k]) : 0;

        if (value < 0)
            return false;
        group = group << 6 | (uint32_t)value;
    }
    if (group & (0xffffffu >> (8 * (digits - 1))))
        return false;
    for (size_t k = 0; k < 3; k++)
        bytes[k] = (unsigned char)(group >> (16 - 8 * k));
    bh_buf_put(out, bytes, digits - 1);
    return !out->overflow;
}

/* How many characters of the last group stand for something. */
static size_t
last_digits(const struct flavour *flavour, const char *text, size_t length)
{
    size_t digits = length % 4 ? length % 4 : 4;

    while (flavour->padded && digits > 2 && text[length - 4 + digits - 1] == '=')
        digits--;
    return digits;
}

static bool
decode(const struct flavour *flavour, struct bh_buf *out, const char *text, size_t length)
{
    size_t start = out->length;

    if (flavour->padded ? length % 4 != 0 : length % 4 == 1)
        return false;
    for (size_t i = 0; i < length; i += 4) {
        size_t digits = length - i > 4 ? 4 : last_digits(flavour, text, length);

        if (!decode_group(flavour, out, text + i, digits)) {
            out->length = start;
            return false;
        }
    }
    return true;
}

void
bh_base64_encode(struct bh_buf *out, const void *bytes, size_t length)
{
    encode(&standard, out, bytes, length);
}

bool
bh_base64_decode(struct bh_buf *out, const char *text, size_t length)
{
    return decode(&standard, out, text, length);
}

void
bh_base64url_encode(struct bh_buf *out, const void *bytes, size_t length)
{
    encode(&url, out, bytes, length);
}

bool
bh_base64url_decode(struct bh_buf *out, const char *text, size_t length)
{
    return decode(&url, out, text, length);
}
