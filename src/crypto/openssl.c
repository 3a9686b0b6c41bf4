/* The low-level SHA-256 calls keep their state in the caller's memory, which makes
 * hashing short leaves several times faster than the EVP calls; OpenSSL 3 has them
 * still, but hides them from programs that ask for its newest interface. */
#define OPENSSL_API_COMPAT 0x10100000L

#include "crypto/openssl.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "crypto/openssl_internal.h"

static_assert(sizeof(SHA256_CTX) <= sizeof(((struct bh_sha256 *)0)->state),
              "struct bh_sha256 holds OpenSSL's state");

static SHA256_CTX *
openssl_context_of(struct bh_sha256 *hash)
{
    return (SHA256_CTX *)(void *)hash->state;
}

static void
openssl_sha256_begin(struct bh_sha256 *hash)
{
    hash->context = NULL;
    SHA256_Init(openssl_context_of(hash));
}

static void
openssl_sha256_put(struct bh_sha256 *hash, const void *bytes, size_t length)
{
    SHA256_Update(openssl_context_of(hash), bytes, length);
}

static void
openssl_sha256_finish(struct bh_sha256 *hash, uint8_t ret_digest[32])
{
    SHA256_Final(ret_digest, openssl_context_of(hash));
}

static void
openssl_sha256(const void *first, size_t first_length, const void *second, size_t second_length,
               uint8_t ret_digest[32])
{
    SHA256_CTX context;

    SHA256_Init(&context);
    SHA256_Update(&context, first, first_length);
    if (second_length > 0)
        SHA256_Update(&context, second, second_length);
    SHA256_Final(ret_digest, &context);
}

static bh_rc
openssl_sign(const uint8_t private_key[32], const void *message, size_t length, uint8_t ret_signature[64],
             struct bh_err *err)
{
    BH_AUTO(EVP_PKEY_free) EVP_PKEY *key = NULL;
    BH_AUTO(EVP_MD_CTX_free) EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t size = 64;

    key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, private_key, 32);
    if (!key || !context || EVP_DigestSignInit(context, NULL, NULL, NULL, key) != 1
        || EVP_DigestSign(context, ret_signature, &size, message, length) != 1)
        return bh_openssl_err(err, BH_IO, "cannot sign");
    return BH_OK;
}

static bh_rc
openssl_verify(const uint8_t public_key[32], const void *message, size_t length, const uint8_t signature[64],
               struct bh_err *err)
{
    BH_AUTO(EVP_PKEY_free) EVP_PKEY *key = NULL;
    BH_AUTO(EVP_MD_CTX_free) EVP_MD_CTX *context = EVP_MD_CTX_new();

    key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, 32);
    if (!key || !context || EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) != 1)
        return bh_openssl_err(err, BH_IO, "cannot verify a signature");
    if (EVP_DigestVerify(context, signature, 64, message, length) == 1)
        return BH_OK;
    ERR_clear_error();
    return bh_err_set(err, BH_DENIED, "the signature is not good");
}

static bh_rc
openssl_public_of(const uint8_t private_key[32], uint8_t ret_public[32], struct bh_err *err)
{
    BH_AUTO(EVP_PKEY_free) EVP_PKEY *key = NULL;
    size_t size = 32;

    key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, private_key, 32);
    if (!key || EVP_PKEY_get_raw_public_key(key, ret_public, &size) != 1)
        return bh_openssl_err(err, BH_IO, "cannot make a public key");
    return BH_OK;
}

/* The kernel's own: each request draws its number, and OpenSSL's generator asks for the process
 * id each time and keeps a state for each thread. */
static bh_rc
openssl_random_bytes(void *ret_bytes, size_t length, struct bh_err *err)
{
    unsigned char *at = ret_bytes;

    while (length > 0) {
        ssize_t count = getrandom(at, length, 0);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return bh_err_errno(err, "cannot draw random bytes");
        at += count;
        length -= (size_t)count;
    }
    return BH_OK;
}

static bh_rc
openssl_make_key(uint8_t ret_private[32], uint8_t ret_public[32], struct bh_err *err)
{
    uint8_t private_key[32];
    bh_rc rc = openssl_random_bytes(private_key, sizeof private_key, err);

    if (rc == BH_OK)
        rc = openssl_public_of(private_key, ret_public, err);
    if (rc == BH_OK)
        memcpy(ret_private, private_key, sizeof private_key);
    OPENSSL_cleanse(private_key, sizeof private_key);
    return rc;
}

const struct bh_crypto_ops bh_crypto_openssl = {
    .name = "openssl",
    .sha256 = openssl_sha256,
    .sha256_begin = openssl_sha256_begin,
    .sha256_put = openssl_sha256_put,
    .sha256_finish = openssl_sha256_finish,
    .sign = openssl_sign,
    .verify = openssl_verify,
    .make_key = openssl_make_key,
    .public_of = openssl_public_of,
    .hmac = bh_openssl_hmac,
    .seal = bh_openssl_seal,
    .open = bh_openssl_open,
    .random = openssl_random_bytes,
    .make_certificate = bh_openssl_make_certificate,
};
