#include "identity/secret.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "base/base64.h"

bool
bh_secret_equal_bytes(const void *a, const void *b, size_t length)
{
    return CRYPTO_memcmp(a, b, length) == 0;
}

bool
bh_secret_equal(const char *a, const char *b)
{
    size_t length = strlen(a);

    return length == strlen(b) && bh_secret_equal_bytes(a, b, length);
}

void
bh_secret_wipe(void *bytes, size_t length)
{
    OPENSSL_cleanse(bytes, length);
}

void
bh_secret_text(const uint8_t bytes[BH_SECRET_BYTES], char ret_text[BH_SECRET_TEXT])
{
    struct bh_buf out;
    const char *done;

    bh_buf_init_fixed(&out, ret_text, BH_SECRET_TEXT);
    bh_base64url_encode(&out, bytes, BH_SECRET_BYTES);
    done = bh_buf_text(&out);
    BH_ASSERT(done);
}

void
bh_secret_challenge(const char *text, char ret_challenge[BH_SECRET_TEXT])
{
    uint8_t digest[BH_SECRET_BYTES];
    unsigned length;

    BH_ASSERT(EVP_Digest(text, strlen(text), digest, &length, EVP_sha256(), NULL) == 1);
    bh_secret_text(digest, ret_challenge);
}

void
bh_secret_mac(const char *key, const char *text, char ret_mac[BH_SECRET_TEXT])
{
    uint8_t mac[BH_SECRET_BYTES];
    unsigned length = 0;

    BH_ASSERT(HMAC(EVP_sha256(), key, (int)strlen(key), (const uint8_t *)text, strlen(text), mac, &length));
    BH_ASSERT(length == sizeof mac);
    bh_secret_text(mac, ret_mac);
}
