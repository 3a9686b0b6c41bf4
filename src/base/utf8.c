#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"

/* The least code that needs a sequence of this many bytes. */
static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

static size_t
utf8_sequence_bytes(unsigned char lead)
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
    size_t bytes = length ? utf8_sequence_bytes((unsigned char)text[0]) : 0;
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

/* Of Unicode 15.0: the categories Cc, Cf, Co, Zl and Zp (UnicodeData.txt), what is
 * Default_Ignorable_Code_Point (DerivedCoreProperties.txt, with its Hangul fillers, variation
 * selectors and what is not assigned), the noncharacters U+FDD0 to U+FDEF, the specials but the
 * replacement character, and U+2800, a braille pattern without dots.  The last two of each
 * plane are no characters, either. */
static const struct {
    uint32_t first, last;
    /* clang-format off */
} unseen[] = {
    { 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x00ad, 0x00ad }, { 0x034f, 0x034f },
    { 0x0600, 0x0605 }, { 0x061c, 0x061c }, { 0x06dd, 0x06dd }, { 0x070f, 0x070f },
    { 0x0890, 0x0891 }, { 0x08e2, 0x08e2 }, { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
    { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
    { 0x2800, 0x2800 }, { 0x3164, 0x3164 }, { 0xe000, 0xf8ff }, { 0xfdd0, 0xfdef },
    { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffc },
    { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 },
    { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff }, { 0xf0000, 0x10ffff },
};
/* clang-format on */

uint32_t
bh_utf8_code(const char *text, size_t bytes)
{
    uint32_t code = (unsigned char)text[0];

    if (bytes == 1)
        return code;
    code &= 0xffu >> (bytes + 1);
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

static bool
utf8_is_unseen(const char *text, size_t bytes)
{
    uint32_t code = bh_utf8_code(text, bytes);

    if (code >= 0x20 && code < 0x7f)
        return false;
    for (size_t i = 0; i < BH_COUNT(unseen); i++)
        if (code >= unseen[i].first && code <= unseen[i].last)
            return true;
    return (code & 0xfffe) == 0xfffe;
}

size_t
bh_utf8_shown_step(const char *text, size_t length)
{
    size_t bytes = bh_utf8_step(text, length);

    return bytes == 0 || utf8_is_unseen(text, bytes) ? 0 : bytes;
}

bool
bh_utf8_is_valid(const char *text)
{
    size_t left = strlen(text), bytes;

    for (; left > 0 && (bytes = bh_utf8_step(text, left)) > 0; left -= bytes)
        text += bytes;
    return left == 0;
}

bool
bh_utf8_is_shown(const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t bytes = bh_utf8_shown_step(text, left);

        if (bytes == 0)
            return false;
        text += bytes;
        left -= bytes;
    }
    return true;
}

static void
utf8_scrub(char *text, const char *stays)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t bytes = bh_utf8_step(text, left);
        bool kept_length = bytes > 0 && (!utf8_is_unseen(text, bytes) || strchr(stays, *text));

        if (bytes == 0)
            bytes = 1;
        if (!kept_length)
            memset(text, '?', bytes);
        text += bytes;
        left -= bytes;
    }
}

void
bh_utf8_scrub(char *text)
{
    utf8_scrub(text, "");
}

void
bh_utf8_scrub_lines(char *text)
{
    utf8_scrub(text, "\n\t");
}
