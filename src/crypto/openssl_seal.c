#include "crypto/openssl.h"

#include <stdbool.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include "crypto/openssl_internal.h"

/* XAES-256-GCM of C2SP (c2sp.org/XAES-256-GCM): the first half of the nonce and the key
 * make a key of this message's own, by SP 800-108 in counter mode over CMAC; AES-256-GCM
 * takes that and the other half.  And HMAC, over the hash that keeps its state here. */

BH_AUTO_DEFINE(EVP_CIPHER_CTX *, EVP_CIPHER_CTX_free)

enum { BLOCK = 16, KEY = 32, HALF = 12, CHUNK_MAX = 1 << 30, HASH_BLOCK = 64 };

/* What CMAC adds to a last block that is whole: the encrypted zero, doubled in GF(2^128). */
static void
seal_double_block(uint8_t block[BLOCK])
{
    uint8_t carry = block[0] >> 7;

    for (int i = 0; i < BLOCK - 1; i++)
        block[i] = (uint8_t)(block[i] << 1 | block[i + 1] >> 7);
    block[BLOCK - 1] = (uint8_t)(block[BLOCK - 1] << 1 ^ carry * 0x87);
}

static bool
seal_encrypt_block(EVP_CIPHER_CTX *aes, const uint8_t in[BLOCK], uint8_t ret_out[BLOCK])
{
    int length;

    return EVP_EncryptUpdate(aes, ret_out, &length, in, BLOCK) == 1 && length == BLOCK;
}

static bool
seal_message_key(const struct bh_aead *aead, uint8_t ret_key[KEY])
{
    BH_AUTO(EVP_CIPHER_CTX_free) EVP_CIPHER_CTX *aes = EVP_CIPHER_CTX_new();
    uint8_t mask[BLOCK] = { 0 }, block[BLOCK];
    bool good = aes && EVP_EncryptInit_ex(aes, EVP_aes_256_ecb(), NULL, aead->key, NULL) == 1
                && EVP_CIPHER_CTX_set_padding(aes, 0) == 1 && seal_encrypt_block(aes, mask, mask);

    seal_double_block(mask);
    for (uint8_t half = 0; half < 2 && good; half++) {
        const uint8_t counter[4] = { 0, (uint8_t)(half + 1), 'X', 0 };

        memcpy(block, counter, sizeof counter);
        memcpy(block + sizeof counter, aead->nonce, HALF);
        for (int i = 0; i < BLOCK; i++)
            block[i] ^= mask[i];
        good = seal_encrypt_block(aes, block, ret_key + half * BLOCK);
    }
    OPENSSL_cleanse(mask, sizeof mask);
    OPENSSL_cleanse(block, sizeof block);
    return good;
}

static EVP_CIPHER_CTX *
seal_begin(const struct bh_aead *aead, bool encrypt)
{
    BH_AUTO(EVP_CIPHER_CTX_free) EVP_CIPHER_CTX *gcm = EVP_CIPHER_CTX_new();
    uint8_t key[KEY];
    int length;
    bool good = gcm && seal_message_key(aead, key)
                && EVP_CipherInit_ex(gcm, EVP_aes_256_gcm(), NULL, key, aead->nonce + HALF, encrypt) == 1;

    OPENSSL_cleanse(key, sizeof key);
    if (good && aead->bound_length > 0)
        good = EVP_CipherUpdate(gcm, NULL, &length, aead->bound, (int)aead->bound_length) == 1;
    return good ? bh_steal(&gcm) : NULL;
}

/* OpenSSL counts in int. */
static bool
seal_pass(EVP_CIPHER_CTX *gcm, const uint8_t *from, size_t length, uint8_t *to)
{
    while (length > 0) {
        int piece = length > CHUNK_MAX ? CHUNK_MAX : (int)length, done;

        if (EVP_CipherUpdate(gcm, to, &done, from, piece) != 1)
            return false;
        from += piece;
        to += done;
        length -= (size_t)piece;
    }
    return true;
}

bh_rc
bh_openssl_seal(const struct bh_aead *aead, const void *plain, size_t length, void *ret_sealed,
                struct bh_err *err)
{
    BH_AUTO(EVP_CIPHER_CTX_free) EVP_CIPHER_CTX *gcm = seal_begin(aead, true);
    uint8_t *out = ret_sealed;
    int rest;

    if (!gcm || !seal_pass(gcm, plain, length, out) || EVP_EncryptFinal_ex(gcm, out + length, &rest) != 1
        || EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_GCM_GET_TAG, BH_AEAD_TAG_BYTES, out + length) != 1)
        return bh_openssl_err(err, BH_IO, "cannot seal");
    return BH_OK;
}

bh_rc
bh_openssl_open(const struct bh_aead *aead, const void *sealed, size_t length, void *ret_plain,
                struct bh_err *err)
{
    BH_AUTO(EVP_CIPHER_CTX_free) EVP_CIPHER_CTX *gcm = NULL;
    uint8_t tag[BH_AEAD_TAG_BYTES], *out = ret_plain;
    int rest;

    if (length < sizeof tag)
        return bh_err_set(err, BH_INVALID, "too short to have been sealed");
    length -= sizeof tag;
    memcpy(tag, (const uint8_t *)sealed + length, sizeof tag);
    gcm = seal_begin(aead, false);
    if (!gcm || !seal_pass(gcm, sealed, length, out)
        || EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_GCM_SET_TAG, sizeof tag, tag) != 1)
        return bh_openssl_err(err, BH_IO, "cannot open what was sealed");
    if (EVP_DecryptFinal_ex(gcm, out + length, &rest) == 1)
        return BH_OK;
    ERR_clear_error();
    OPENSSL_cleanse(out, length);
    return bh_err_set(err, BH_INVALID, "was not sealed with this key, or was changed");
}

/* SHA-256 of a padded key and what follows it. */
static void
seal_hash_behind(const uint8_t key[HASH_BLOCK], uint8_t pad, const void *message, size_t length,
                 uint8_t ret_digest[32])
{
    uint8_t block[HASH_BLOCK];

    for (int i = 0; i < HASH_BLOCK; i++)
        block[i] = key[i] ^ pad;
    bh_crypto_openssl.sha256(block, sizeof block, message, length, ret_digest);
    OPENSSL_cleanse(block, sizeof block);
}

void
bh_openssl_hmac(const void *key, size_t key_length, const void *message, size_t length,
                uint8_t ret_digest[32])
{
    uint8_t block[HASH_BLOCK] = { 0 }, inner[32];

    if (key_length > sizeof block)
        bh_crypto_openssl.sha256(key, key_length, "", 0, block);
    else
        memcpy(block, key, key_length);
    seal_hash_behind(block, 0x36, message, length, inner);
    seal_hash_behind(block, 0x5c, inner, sizeof inner, ret_digest);
    OPENSSL_cleanse(block, sizeof block);
}
