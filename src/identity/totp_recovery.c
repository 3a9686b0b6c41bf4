#include "identity/totp.h"

#include <string.h>

#include "base/assert.h"
#include "identity/secret.h"

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

enum { CODE_DIGITS = 16 };

static void
hash_code(const char *salt, const char code[CODE_DIGITS + 1], char ret_hash[BH_RECOVERY_HASH])
{
    char text[512];
    struct bh_buf joined;
    const char *whole;

    bh_buf_init_fixed(&joined, text, sizeof text);
    bh_buf_printf(&joined, "recovery\n%s\n%s", salt, code);
    whole = bh_buf_text(&joined);
    BH_ASSERT(whole);
    bh_secret_challenge(whole, ret_hash);
    bh_secret_wipe(text, sizeof text);
}

/* 80 bits are 16 digits of 5 bits. */
static void
spell(const uint8_t random[BH_RECOVERY_RANDOM], char ret_code[CODE_DIGITS + 1])
{
    for (size_t i = 0; i < CODE_DIGITS; i++) {
        size_t bit = 5 * i, byte = bit / 8;
        uint32_t pair = (uint32_t)random[byte] << 8 | (byte + 1 < BH_RECOVERY_RANDOM ? random[byte + 1] : 0u);

        ret_code[i] = digits[pair >> (11 - bit % 8) & 31];
    }
    ret_code[CODE_DIGITS] = '\0';
}

void
bh_recovery_make(const uint8_t random[BH_RECOVERY_CODES][BH_RECOVERY_RANDOM], const char *salt,
                 struct bh_recovery *ret_set, char ret_codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT])
{
    for (size_t i = 0; i < BH_RECOVERY_CODES; i++) {
        char code[CODE_DIGITS + 1], *text = ret_codes[i];

        spell(random[i], code);
        hash_code(salt, code, ret_set->hashes[i]);
        for (size_t k = 0; k < CODE_DIGITS; k++) {
            if (k > 0 && k % 4 == 0)
                *text++ = '-';
            *text++ = code[k];
        }
        *text = '\0';
        bh_secret_wipe(code, sizeof code);
    }
}

/* What a person typed as it was spelled; false when it cannot be a code. */
static bool
read_code(const char *text, char ret_code[CODE_DIGITS + 1])
{
    size_t count = 0;

    for (; *text; text++) {
        char c = *text;

        if (c == '-' || c == ' ')
            continue;
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (c == 'O')
            c = '0';
        if (c == 'I' || c == 'L')
            c = '1';
        if (!strchr(digits, c) || count == CODE_DIGITS)
            return false;
        ret_code[count++] = c;
    }
    ret_code[count] = '\0';
    return count == CODE_DIGITS;
}

bool
bh_recovery_use(struct bh_recovery *set, const char *salt, const char *code)
{
    char spelled[CODE_DIGITS + 1], hash[BH_RECOVERY_HASH];
    size_t found = BH_RECOVERY_CODES;

    if (!read_code(code, spelled))
        return false;
    hash_code(salt, spelled, hash);
    bh_secret_wipe(spelled, sizeof spelled);
    for (size_t i = 0; i < BH_RECOVERY_CODES; i++)
        if (bh_secret_equal_bytes(set->hashes[i], hash, sizeof hash))
            found = i;
    if (found == BH_RECOVERY_CODES)
        return false;
    memset(set->hashes[found], 0, sizeof set->hashes[found]);
    return true;
}

uint32_t
bh_recovery_left(const struct bh_recovery *set)
{
    uint32_t left = 0;

    for (size_t i = 0; i < BH_RECOVERY_CODES; i++)
        left += set->hashes[i][0] != '\0';
    return left;
}
