#include "identity/fixture_test.h"

#include <stdio.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/assert.h"
#include "base/base64.h"

static EVP_PKEY *keys[BH_TEST_KEYS];
static struct bh_jwks set;
static int pss_salt = RSA_PSS_SALTLEN_DIGEST;
static char jwk_text[2048], pem_text[4096], token[1 << 21];

static void
fixture_test_put_number(struct bh_buf *out, enum bh_test_key key, const char *name, int width)
{
    unsigned char bytes[512];
    BIGNUM *number = NULL;
    int length;

    BH_ASSERT(EVP_PKEY_get_bn_param(keys[key], name, &number) == 1);
    length = width ? BN_bn2binpad(number, bytes, width) : BN_bn2bin(number, bytes);
    BH_ASSERT(length > 0);
    bh_base64url_encode(out, bytes, (size_t)length);
    BN_free(number);
}

static void
put_rsa(struct bh_buf *out, enum bh_test_key key)
{
    bh_buf_puts(out, "{\"kty\":\"RSA\",\"n\":\"");
    fixture_test_put_number(out, key, OSSL_PKEY_PARAM_RSA_N, 0);
    bh_buf_puts(out, "\",\"e\":\"");
    fixture_test_put_number(out, key, OSSL_PKEY_PARAM_RSA_E, 0);
}

static void
put_ec(struct bh_buf *out, enum bh_test_key key, const char *curve, int width)
{
    bh_buf_printf(out, "{\"kty\":\"EC\",\"crv\":\"%s\",\"x\":\"", curve);
    fixture_test_put_number(out, key, OSSL_PKEY_PARAM_EC_PUB_X, width);
    bh_buf_puts(out, "\",\"y\":\"");
    fixture_test_put_number(out, key, OSSL_PKEY_PARAM_EC_PUB_Y, width);
}

static void
put_ed(struct bh_buf *out, enum bh_test_key key)
{
    unsigned char bytes[32];
    size_t length = sizeof bytes;

    BH_ASSERT(EVP_PKEY_get_raw_public_key(keys[key], bytes, &length) == 1);
    bh_buf_puts(out, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"");
    bh_base64url_encode(out, bytes, length);
}

const char *
bh_test_jwk(enum bh_test_key key, const char *extra)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, jwk_text, sizeof jwk_text);
    if (key == BH_TEST_P256)
        put_ec(&out, key, "P-256", 32);
    else if (key == BH_TEST_P384)
        put_ec(&out, key, "P-384", 48);
    else if (key == BH_TEST_ED25519)
        put_ed(&out, key);
    else
        put_rsa(&out, key);
    bh_buf_printf(&out, "\"%s}", extra);
    return bh_buf_text(&out);
}

const char *
bh_test_pem(enum bh_test_key key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int length;

    BH_ASSERT(PEM_write_bio_PrivateKey(bio, keys[key], NULL, NULL, 0, NULL, NULL) == 1);
    length = BIO_read(bio, pem_text, sizeof pem_text - 1);
    BH_ASSERT(length > 0);
    pem_text[length] = '\0';
    BIO_free(bio);
    return pem_text;
}

int
bh_test_keys_init(void **state)
{
    static const char *const extras[] = {
        ",\"kid\":\"rsa\",\"use\":\"sig\"",    ",\"kid\":\"rsa-other\"", ",\"kid\":\"p256\"",
        ",\"kid\":\"p384\",\"alg\":\"ES384\"", ",\"kid\":\"ed\"",
    };
    char memory[8192];
    struct bh_buf text;

    keys[BH_TEST_RSA] = EVP_RSA_gen(2048);
    keys[BH_TEST_RSA_OTHER] = EVP_RSA_gen(2048);
    keys[BH_TEST_RSA_SHORT] = EVP_RSA_gen(1024);
    keys[BH_TEST_P256] = EVP_EC_gen("P-256");
    keys[BH_TEST_P384] = EVP_EC_gen("P-384");
    keys[BH_TEST_ED25519] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_buf_puts(&text, "{\"keys\":[");
    for (size_t i = 0; i < BH_COUNT(extras); i++)
        bh_buf_printf(&text, "%s%s", i ? "," : "", bh_test_jwk((enum bh_test_key)i, extras[i]));
    bh_buf_puts(&text, "]}");
    BH_ASSERT(bh_jwks_parse(text.bytes, text.length, &set) == BH_FAULT_NONE);
    return 0;
}

int
bh_test_keys_fini(void **state)
{
    for (size_t i = 0; i < BH_TEST_KEYS; i++)
        EVP_PKEY_free(keys[i]);
    return 0;
}

const struct bh_jwks *
bh_test_jwks(void)
{
    return &set;
}

/* DER becomes r and s side by side. */
static size_t
from_der(unsigned char *bytes, size_t length, int half)
{
    const unsigned char *at = bytes;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)length);

    BH_ASSERT(pair);
    BH_ASSERT(BN_bn2binpad(ECDSA_SIG_get0_r(pair), bytes, half) == half);
    BH_ASSERT(BN_bn2binpad(ECDSA_SIG_get0_s(pair), bytes + half, half) == half);
    ECDSA_SIG_free(pair);
    return (size_t)half * 2;
}

static size_t
fixture_test_sign(enum bh_test_key key, enum bh_jws_alg alg, const struct bh_buf *message,
                  unsigned char ret_bytes[512])
{
    const EVP_MD *hash = alg == BH_JWS_EDDSA ? NULL : alg == BH_JWS_ES384 ? EVP_sha384() : EVP_sha256();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *padding;
    size_t length = 512;

    BH_ASSERT(EVP_DigestSignInit(context, &padding, hash, NULL, keys[key]) == 1);
    if (alg == BH_JWS_PS256)
        BH_ASSERT(EVP_PKEY_CTX_set_rsa_padding(padding, RSA_PKCS1_PSS_PADDING) > 0
                  && EVP_PKEY_CTX_set_rsa_pss_saltlen(padding, pss_salt) > 0);
    BH_ASSERT(
        EVP_DigestSign(context, ret_bytes, &length, (const unsigned char *)message->bytes, message->length)
        == 1);
    EVP_MD_CTX_free(context);
    if (key == BH_TEST_P256 || key == BH_TEST_P384)
        length = from_der(ret_bytes, length, key == BH_TEST_P256 ? 32 : 48);
    return length;
}

static void
fixture_test_begin(struct bh_buf *out, const char *header, const char *payload)
{
    bh_buf_init_fixed(out, token, sizeof token);
    bh_base64url_encode(out, header, strlen(header));
    bh_buf_putc(out, '.');
    bh_base64url_encode(out, payload, strlen(payload));
}

static const char *
fixture_test_finish(struct bh_buf *out, const unsigned char *bytes, size_t length)
{
    const char *text;

    bh_buf_putc(out, '.');
    bh_base64url_encode(out, bytes, length);
    text = bh_buf_text(out);
    BH_ASSERT(text);
    return text;
}

const char *
bh_test_sign(enum bh_test_key key, enum bh_jws_alg alg, const char *header, const char *payload)
{
    unsigned char bytes[512];
    size_t length = 0;
    struct bh_buf out;

    fixture_test_begin(&out, header, payload);
    if (alg < BH_JWS_ALGS)
        length = fixture_test_sign(key, alg, &out, bytes);
    return fixture_test_finish(&out, bytes, length);
}

const char *
bh_test_sign_pss(const char *header, const char *payload, int salt_bytes)
{
    const char *text;

    pss_salt = salt_bytes;
    text = bh_test_sign(BH_TEST_RSA, BH_JWS_PS256, header, payload);
    pss_salt = RSA_PSS_SALTLEN_DIGEST;
    return text;
}

const char *
bh_test_sign_hmac(const char *header, const char *payload)
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    BIO *bio = BIO_new(BIO_s_mem());
    unsigned length = sizeof bytes;
    struct bh_buf out;
    char *pem;
    long size;

    BH_ASSERT(PEM_write_bio_PUBKEY(bio, keys[BH_TEST_RSA]) == 1);
    size = BIO_get_mem_data(bio, &pem);
    fixture_test_begin(&out, header, payload);
    HMAC(EVP_sha256(), pem, (int)size, (const unsigned char *)out.bytes, out.length, bytes, &length);
    BIO_free(bio);
    return fixture_test_finish(&out, bytes, length);
}
