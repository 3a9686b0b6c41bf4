#include "api/request/token.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static const char id_letters[] = "abcdefghijklmnopqrstuvwxyz234567";
static const char secret_letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

enum {
    ID_AT = 3,
    SECRET_AT = ID_AT + BH_TOKEN_ID_LENGTH + 1,
    CHECK_AT = SECRET_AT + BH_TOKEN_SECRET_LENGTH + 1
};

static const char *const prefixes[] = { [BH_TOKEN_API] = "bh_", [BH_TOKEN_SESSION] = "bs_" };

/* CRC-32 as in zip and gzip. */
static uint32_t
crc32(const char *bytes, size_t length)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

/* `count` random letters of an alphabet, each equally likely. */
static bh_rc
token_draw(const struct bh_crypto_ops *crypto, const char *letters, char *ret_text, size_t count,
           struct bh_err *err)
{
    size_t size = strlen(letters), limit = 256 / size * size, done = 0;

    while (done < count) {
        uint8_t bytes[64];
        bh_rc rc = crypto->random(bytes, sizeof bytes, err);

        if (rc != BH_OK)
            return rc;
        for (size_t i = 0; i < sizeof bytes && done < count; i++)
            if (bytes[i] < limit)
                ret_text[done++] = letters[bytes[i] % size];
    }
    return BH_OK;
}

bh_rc
bh_token_make(const struct bh_crypto_ops *crypto, struct bh_token *token, char ret_text[BH_TOKEN_LENGTH + 1],
              struct bh_err *err)
{
    char text[BH_TOKEN_LENGTH + 1] = "";
    bool fits;
    bh_rc rc;

    memcpy(text, prefixes[token->kind], ID_AT);
    rc = token_draw(crypto, id_letters, text + ID_AT, BH_TOKEN_ID_LENGTH, err);
    if (rc != BH_OK)
        return rc;

    rc = token_draw(crypto, secret_letters, text + SECRET_AT, BH_TOKEN_SECRET_LENGTH, err);
    if (rc != BH_OK)
        return rc;
    text[SECRET_AT - 1] = text[CHECK_AT - 1] = '_';
    snprintf(text + CHECK_AT, sizeof text - CHECK_AT, "%08x", crc32(text, CHECK_AT - 1));
    fits = bh_token_parse(crypto, text, token);
    BH_ASSERT(fits);
    memcpy(ret_text, text, sizeof text);
    return BH_OK;
}

static bool
all_of(const char *text, size_t count, const char *letters)
{
    for (size_t i = 0; i < count; i++)
        if (!text[i] || !strchr(letters, text[i]))
            return false;
    return true;
}

bool
bh_token_id_valid(const char *id)
{
    return strlen(id) == BH_TOKEN_ID_LENGTH && all_of(id, BH_TOKEN_ID_LENGTH, id_letters);
}

bool
bh_token_id_of(const char *text, char ret_id[BH_TOKEN_ID_LENGTH + 1])
{
    if (strncmp(text, prefixes[BH_TOKEN_API], ID_AT) != 0
        || !all_of(text + ID_AT, BH_TOKEN_ID_LENGTH, id_letters))
        return false;
    memcpy(ret_id, text + ID_AT, BH_TOKEN_ID_LENGTH);
    ret_id[BH_TOKEN_ID_LENGTH] = '\0';
    return true;
}

bool
bh_token_parse(const struct bh_crypto_ops *crypto, const char *text, struct bh_token *ret_token)
{
    char check[9];

    bool session = strncmp(text, prefixes[BH_TOKEN_SESSION], ID_AT) == 0;

    if (strlen(text) != BH_TOKEN_LENGTH || (!session && strncmp(text, prefixes[BH_TOKEN_API], ID_AT) != 0)
        || text[SECRET_AT - 1] != '_' || text[CHECK_AT - 1] != '_'
        || !all_of(text + ID_AT, BH_TOKEN_ID_LENGTH, id_letters)
        || !all_of(text + SECRET_AT, BH_TOKEN_SECRET_LENGTH, secret_letters))
        return false;
    snprintf(check, sizeof check, "%08x", crc32(text, CHECK_AT - 1));
    if (strcmp(check, text + CHECK_AT) != 0)
        return false;
    ret_token->kind = session ? BH_TOKEN_SESSION : BH_TOKEN_API;
    memcpy(ret_token->id, text + ID_AT, BH_TOKEN_ID_LENGTH);
    ret_token->id[BH_TOKEN_ID_LENGTH] = '\0';
    crypto->sha256(text + SECRET_AT, BH_TOKEN_SECRET_LENGTH, "", 0, ret_token->secret);
    return true;
}

bool
bh_token_same(const uint8_t a[32], const uint8_t b[32])
{
    const volatile uint8_t *left = a, *right = b;
    uint8_t differences = 0;

    for (size_t i = 0; i < 32; i++)
        differences |= (uint8_t)(left[i] ^ right[i]);
    return differences == 0;
}
