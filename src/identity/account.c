#include "identity/account.h"

#include <string.h>

#include "base/utf8.h"

/* What Latin letters with marks are without them and in small letters ('.': something
 * else), as Unicode decomposes them; Debian's python3 made these rows. */
static const struct {
    uint32_t first, last;
    const char *letters;
} folds[] = {
    { 0x00c0, 0x024f,
      "aaaaaa.ceeeeiiii.nooooo.ouuuuy..aaaaaa.ceeeeiiii.nooooo.ouuuuy.yaaaaaaccccccccdd"
      "ddeeeeeeeeeegggggggghhhhiiiiiiiiii..jjkk.llllll..llnnnnnn...oooooo..rrrrrrssssss"
      "ssttttttuuuuuuuuuuuuwwyyyzzzzzzs................................oo.............u"
      "u............................aaiioouuuuuuuuuu.aaaa....ggkkoooo..j...gg..nnaa...."
      "aaaaeeeeiiiioooorrrruuuusstt..hh......aaeeooooooooyy............................" },
    { 0x1e00, 0x1eff,
      "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooo"
      "oooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwy.s...."
      "aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuu"
      "uuyyyyyyyy......" },
};

/* What is not seen, or only changes the letter before it. */
static const struct {
    uint32_t first, last;
    /* clang-format off */
} marks[] = {
    { 0x00ad, 0x00ad }, { 0x0300, 0x036f }, { 0x0483, 0x0489 },   { 0x061c, 0x061c },
    { 0x180b, 0x180e }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },   { 0x200b, 0x200f },
    { 0x202a, 0x202e }, { 0x2060, 0x206f }, { 0x20d0, 0x20ff },   { 0xfe00, 0xfe0f },
    { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff }, { 0xe0000, 0xe0fff },
};
/* clang-format on */

static bool
is_space(uint32_t code)
{
    return code <= 0x20 || code == 0xa0 || (code >= 0x2000 && code <= 0x200a) || code == 0x202f
           || code == 0x205f || code == 0x3000;
}

static bool
is_mark(uint32_t code)
{
    for (size_t i = 0; i < BH_COUNT(marks); i++)
        if (code >= marks[i].first && code <= marks[i].last)
            return true;
    return false;
}

/* The letter that `code` counts as. */
static uint32_t
fold(uint32_t code)
{
    if (code >= 0xff01 && code <= 0xff5e) /* as wide as a Chinese sign */
        code -= 0xff01 - 0x21;
    if (code >= 'A' && code <= 'Z')
        return code - 'A' + 'a';
    for (size_t i = 0; i < BH_COUNT(folds); i++)
        if (code >= folds[i].first && code <= folds[i].last && folds[i].letters[code - folds[i].first] != '.')
            return (uint32_t)folds[i].letters[code - folds[i].first];
    return code;
}

static uint32_t
code_of(const char *text, size_t bytes)
{
    static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = (unsigned char)text[0] & lead[bytes];

    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

void
bh_account_key(const char *text, struct bh_buf *out)
{
    size_t length = strlen(text), kept_length = out->length, start = out->length;

    while (length > 0) {
        size_t bytes = bh_utf8_step(text, length);
        uint32_t code = bytes ? code_of(text, bytes) : 0xfffd;
        char letter[4];

        bytes = bytes ? bytes : 1;
        text += bytes;
        length -= bytes;
        if (is_mark(code) || (is_space(code) && out->length == start))
            continue;
        bh_buf_put(out, letter, bh_utf8_encode(is_space(code) ? ' ' : fold(code), letter));
        if (!is_space(code))
            kept_length = out->length;
    }
    out->length = kept_length; /* without blanks at the end */
}

bool
bh_account_name(const char *text, char ret_name[BH_ACCOUNT_MAX + 1])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789._@+-";
    char name[BH_ACCOUNT_MAX + 1];
    size_t length;

    text += strspn(text, " \t");
    length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    if (length == 0 || length > BH_ACCOUNT_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        name[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    name[length] = '\0';
    if (name[strspn(name, plain)])
        return false;
    memcpy(ret_name, name, length + 1);
    return true;
}
