#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"

/* The least code that needs a sequence of this many bytes. */
static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

static size_t
sequence_bytes(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    if (lead < 0xe0)
        return 2;
    return lead < 0xf0 ? 3 : 4;
}

size_t
bh_utf8_step(const char *text, size_t length)
{
    size_t bytes = length ? sequence_bytes((unsigned char)text[0]) : 0;
    uint32_t code;

    if (bytes <= 1 || bytes > length)
        return bytes <= length ? bytes : 0;
    code = (unsigned char)text[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];

        if ((c & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (c & 0x3f);
    }
    if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return bytes;
}

size_t
bh_utf8_encode(uint32_t code, char ret_bytes[4])
{
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    size_t bytes = 1;

    BH_ASSERT(code <= 0x10ffff);
    while (bytes < 4 && code >= least[bytes + 1])
        bytes++;
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6)
        ret_bytes[i] = (char)(0x80 | (code & 0x3f));
    ret_bytes[0] = (char)(lead[bytes] | code);
    return bytes;
}

/* C0, DEL, and C1, which terminals obey when it comes as two bytes. */
static bool
is_control(const char *text, size_t bytes)
{
    unsigned char c = (unsigned char)text[0];

    if (bytes == 1)
        return c < 0x20 || c == 0x7f;
    return bytes == 2 && c == 0xc2 && (unsigned char)text[1] < 0xa0;
}

void
bh_utf8_scrub(char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t bytes = bh_utf8_step(text, left);
        bool keep = bytes > 0 && !is_control(text, bytes);

        if (bytes == 0)
            bytes = 1;
        if (!keep)
            memset(text, '?', bytes);
        text += bytes;
        left -= bytes;
    }
}
