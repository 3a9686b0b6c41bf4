#include "keys/wrap.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum { KEY_BYTES = 32, USE_MAX = 63, BOUND_MAX = 160 };

static_assert(BH_KEY_WRAPPED_BYTES == BH_AEAD_NONCE_BYTES + KEY_BYTES + BH_AEAD_TAG_BYTES,
              "a wrapped key is nonce, ciphertext and tag");

void
bh_key_derive(const struct bh_crypto_ops *crypto, const uint8_t key[32], const char *use, uint8_t ret_key[32])
{
    static const char salt[] = "bulkhead keys v1";
    uint8_t extracted[KEY_BYTES], info[USE_MAX + 1];
    size_t length = strlen(use);

    BH_ASSERT(length <= USE_MAX);
    memcpy(info, use, length);
    info[length] = 1; /* the first block, no other is needed */
    crypto->hmac(salt, sizeof salt - 1, key, KEY_BYTES, extracted);
    crypto->hmac(extracted, sizeof extracted, info, length + 1, ret_key);
    explicit_bzero(extracted, sizeof extracted);
}

/* What names the key, so that its wrapped form fits no other row. */
static struct bh_aead
bound_to(const struct bh_key_row *row, const uint8_t wrapping[32], char text[BOUND_MAX])
{
    int length = snprintf(text, BOUND_MAX,
                          "bulkhead key v1 id=%" PRIu64 " kind=%d tenant=%" PRIu32 " month=%" PRIu32
                          " parent=%" PRIu64,
                          row->id, (int)row->kind, row->tenant_id, row->month, row->parent);

    BH_ASSERT(length > 0 && length < BOUND_MAX);
    return (struct bh_aead){ wrapping, row->wrapped, text, (size_t)length };
}

bh_rc
bh_key_wrap(const struct bh_crypto_ops *crypto, const uint8_t wrapping[32], const uint8_t plain[32],
            struct bh_key_row *row, struct bh_err *err)
{
    char text[BOUND_MAX];
    struct bh_aead aead = bound_to(row, wrapping, text);
    bh_rc rc = crypto->random(row->wrapped, BH_AEAD_NONCE_BYTES, err);

    if (rc != BH_OK)
        return rc;
    return crypto->seal(&aead, plain, KEY_BYTES, row->wrapped + BH_AEAD_NONCE_BYTES, err);
}

bh_rc
bh_key_unwrap(const struct bh_crypto_ops *crypto, const uint8_t wrapping[32], const struct bh_key_row *row,
              uint8_t ret_plain[32], struct bh_err *err)
{
    char text[BOUND_MAX];
    struct bh_aead aead = bound_to(row, wrapping, text);
    bh_rc rc = crypto->open(&aead, row->wrapped + BH_AEAD_NONCE_BYTES,
                            BH_KEY_WRAPPED_BYTES - BH_AEAD_NONCE_BYTES, ret_plain, err);

    return rc == BH_OK ? rc : bh_err_wrap(err, "key %" PRIu64, row->id);
}
