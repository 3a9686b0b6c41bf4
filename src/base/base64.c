#include "base/base64.h"

#include <stdint.h>

/* The last two characters of the alphabet, and whether groups are padded. */
struct variant {
    char digit62, digit63;
    bool padded;
};

static const struct variant standard = { '+', '/', true }, url = { '-', '_', false };

enum { CHUNK_GROUPS = 64 }; /* written at once */

static char
base64_digit_of(const struct variant *variant, uint32_t value)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    if (value < 62)
        return alphabet[value];
    return value == 62 ? variant->digit62 : variant->digit63;
}

/* Whole groups of three bytes, at most CHUNK_GROUPS. */
static void
base64_encode_chunk(const struct variant *variant, struct bh_buf *out, const unsigned char *byte,
                    size_t groups)
{
    char text[4 * CHUNK_GROUPS];

    for (size_t i = 0; i < groups; i++, byte += 3) {
        uint32_t group = (uint32_t)byte[0] << 16 | (uint32_t)byte[1] << 8 | byte[2];

        for (size_t k = 0; k < 4; k++)
            text[4 * i + k] = base64_digit_of(variant, group >> (18 - 6 * k) & 63);
    }
    bh_buf_put(out, text, 4 * groups);
}

static void
base64_encode(const struct variant *variant, struct bh_buf *out, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    size_t whole = length / 3, rest = length % 3;

    for (size_t done = 0; done < whole; done += CHUNK_GROUPS)
        base64_encode_chunk(variant, out, byte + 3 * done,
                            whole - done < CHUNK_GROUPS ? whole - done : CHUNK_GROUPS);
    if (rest > 0) {
        uint32_t group =
            (uint32_t)byte[3 * whole] << 16 | (rest == 2 ? (uint32_t)byte[3 * whole + 1] << 8 : 0);
        char text[4];

        for (size_t k = 0; k < 4; k++)
            text[k] = k <= rest ? base64_digit_of(variant, group >> (18 - 6 * k) & 63) : '=';
        bh_buf_put(out, text, variant->padded ? sizeof text : rest + 1);
    }
}

static int
base64_digit_value(const struct variant *variant, char c)
{
    static const uint8_t values[256] = {
        /* one more than the value; 0: none */
        ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
        ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
        ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
        ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
        ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
        ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
        ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
        ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62,
    };
    int value = values[(unsigned char)c];

    if (value > 0)
        return value - 1;
    if (c == variant->digit62)
        return 62;
    return c == variant->digit63 ? 63 : -1;
}

/* One group of four characters, of which `digits` (2 to 4) stand for something. */
static bool
base64_decode_group(const struct variant *variant, struct bh_buf *out, const char *text, size_t digits)
{
    unsigned char bytes[3];
    uint32_t group = 0;

    for (size_t k = 0; k < 4; k++) {
        int value = k < digits ? base64_digit_value(variant, text[k]) : 0;

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

/* Whole groups of four digits, at most CHUNK_GROUPS. */
static bool
base64_decode_chunk(const struct variant *variant, struct bh_buf *out, const char *text, size_t groups)
{
    unsigned char bytes[3 * CHUNK_GROUPS];
    int wrong = 0;

    for (size_t i = 0; i < groups; i++, text += 4) {
        int group = 0;

        for (size_t k = 0; k < 4; k++) {
            int value = base64_digit_value(variant, text[k]);

            wrong |= value; /* negative when any is */
            group = group << 6 | (value & 63);
        }
        for (size_t k = 0; k < 3; k++)
            bytes[3 * i + k] = (unsigned char)(group >> (16 - 8 * k));
    }
    if (wrong < 0)
        return false;
    bh_buf_put(out, bytes, 3 * groups);
    return !out->overflow;
}

/* How many characters of the last group stand for something. */
static size_t
base64_last_digits(const struct variant *variant, const char *text, size_t length)
{
    size_t digits = length % 4 ? length % 4 : 4;

    while (variant->padded && digits > 2 && text[length - 4 + digits - 1] == '=')
        digits--;
    return digits;
}

static bool
base64_decode_all(const struct variant *variant, struct bh_buf *out, const char *text, size_t length)
{
    size_t whole = length > 0 ? (length - 1) / 4 : 0; /* the last group may be shorter */

    for (size_t done = 0; done < whole; done += CHUNK_GROUPS)
        if (!base64_decode_chunk(variant, out, text + 4 * done,
                                 whole - done < CHUNK_GROUPS ? whole - done : CHUNK_GROUPS))
            return false;
    return length == 0
           || base64_decode_group(variant, out, text + 4 * whole, base64_last_digits(variant, text, length));
}

static bool
base64_decode(const struct variant *variant, struct bh_buf *out, const char *text, size_t length)
{
    size_t start = out->length;

    if (variant->padded ? length % 4 != 0 : length % 4 == 1)
        return false;
    if (base64_decode_all(variant, out, text, length))
        return true;
    out->length = start;
    return false;
}

void
bh_base64_encode(struct bh_buf *out, const void *bytes, size_t length)
{
    base64_encode(&standard, out, bytes, length);
}

bool
bh_base64_decode(struct bh_buf *out, const char *text, size_t length)
{
    return base64_decode(&standard, out, text, length);
}

void
bh_base64url_encode(struct bh_buf *out, const void *bytes, size_t length)
{
    base64_encode(&url, out, bytes, length);
}

bool
bh_base64url_decode(struct bh_buf *out, const char *text, size_t length)
{
    return base64_decode(&url, out, text, length);
}
