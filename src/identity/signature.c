#include "identity/signature.h"

#include <stdio.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "base/assert.h"
#include "base/base64.h"

BH_AUTO_DEFINE(EVP_PKEY *, EVP_PKEY_free)
BH_AUTO_DEFINE(EVP_PKEY_CTX *, EVP_PKEY_CTX_free)
BH_AUTO_DEFINE(EVP_MD_CTX *, EVP_MD_CTX_free)
BH_AUTO_DEFINE(BIGNUM *, BN_free)
BH_AUTO_DEFINE(ECDSA_SIG *, ECDSA_SIG_free)
BH_AUTO_DEFINE(OSSL_PARAM_BLD *, OSSL_PARAM_BLD_free)
BH_AUTO_DEFINE(OSSL_PARAM *, OSSL_PARAM_free)

enum { DER_BYTES_MAX = 112 };

static EVP_PKEY *
signature_from_params(const char *type, OSSL_PARAM *params)
{
    BH_AUTO(EVP_PKEY_CTX_free)
    EVP_PKEY_CTX *context = NULL;
    EVP_PKEY *key = NULL;

    context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (!context || !params || EVP_PKEY_fromdata_init(context) != 1
        || EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        return NULL;
    return key;
}

static EVP_PKEY *
signature_make_rsa(const struct bh_jwk *jwk)
{
    BH_AUTO(OSSL_PARAM_BLD_free)
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    BH_AUTO(BN_free)
    BIGNUM *n = BN_bin2bn(jwk->n, (int)jwk->n_length, NULL);
    BH_AUTO(BN_free)
    BIGNUM *e = BN_bin2bn(jwk->e, (int)jwk->e_length, NULL);
    BH_AUTO(OSSL_PARAM_free)
    OSSL_PARAM *params = NULL;

    if (!build || !n || !e || !BN_is_odd(n) || !BN_is_odd(e) || BN_is_one(e)
        || OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) != 1
        || OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) != 1)
        return NULL;
    params = OSSL_PARAM_BLD_to_param(build);
    return signature_from_params("RSA", params);
}

/* The public key as an uncompressed point; OpenSSL refuses one off the curve. */
static EVP_PKEY *
signature_make_ec(const struct bh_jwk *jwk, const char *curve, size_t bytes)
{
    uint8_t point[1 + 2 * sizeof jwk->x] = { 4 };
    char name[16];
    OSSL_PARAM params[3];

    snprintf(name, sizeof name, "%s", curve);
    memcpy(point + 1, jwk->x, bytes);
    memcpy(point + 1 + bytes, jwk->y, bytes);
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, name, 0);
    params[1] = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * bytes);
    params[2] = OSSL_PARAM_construct_end();
    return signature_from_params("EC", params);
}

static EVP_PKEY *
signature_make_key(const struct bh_jwk *jwk)
{
    switch (jwk->type) {
    case BH_JWK_RSA:
        return signature_make_rsa(jwk);
    case BH_JWK_P256:
        return signature_make_ec(jwk, "P-256", 32);
    case BH_JWK_P384:
        return signature_make_ec(jwk, "P-384", 48);
    case BH_JWK_ED25519:
        return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, jwk->x, 32);
    }
    return NULL;
}

bool
bh_signature_key_check(const struct bh_jwk *jwk)
{
    BH_AUTO(EVP_PKEY_free)
    EVP_PKEY *key = signature_make_key(jwk);
    BH_AUTO(EVP_PKEY_CTX_free)
    EVP_PKEY_CTX *context = NULL;
    bool good;

    if (key)
        context = EVP_PKEY_CTX_new(key, NULL);
    good = context && (jwk->type == BH_JWK_ED25519 || EVP_PKEY_public_check(context) == 1);
    ERR_clear_error();
    return good;
}

/* r and s side by side become the DER that OpenSSL reads; 0 when they cannot. */
static size_t
signature_to_der(const struct bh_signature *signature, size_t half, uint8_t ret_der[DER_BYTES_MAX])
{
    BH_AUTO(ECDSA_SIG_free)
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r, *s;
    uint8_t *end = ret_der;
    int length;

    if (!pair || signature->length != 2 * half)
        return 0;
    r = BN_bin2bn(signature->bytes, (int)half, NULL);
    s = BN_bin2bn(signature->bytes + half, (int)half, NULL);
    if (!r || !s || ECDSA_SIG_set0(pair, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        return 0;
    }
    length = i2d_ECDSA_SIG(pair, NULL);
    if (length <= 0 || length > DER_BYTES_MAX || i2d_ECDSA_SIG(pair, &end) != length)
        return 0;
    return (size_t)length;
}

static const EVP_MD *
signature_hash_of(enum bh_jws_alg alg)
{
    if (alg == BH_JWS_EDDSA)
        return NULL; /* Ed25519 hashes by itself */
    return alg == BH_JWS_ES384 ? EVP_sha384() : EVP_sha256();
}

/* PS256: MGF1 with SHA-256 and a salt of the hash's length (RFC 7518, 3.5). */
static bool
signature_set_padding(EVP_PKEY_CTX *context, enum bh_jws_alg alg)
{
    if (alg == BH_JWS_PS256)
        return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) > 0
               && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) > 0
               && EVP_PKEY_CTX_set_rsa_mgf1_md(context, EVP_sha256()) > 0;
    return alg != BH_JWS_RS256 || EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) > 0;
}

static bool
signature_verify(EVP_PKEY *key, const struct bh_signature *signature, const uint8_t *bytes, size_t length)
{
    BH_AUTO(EVP_MD_CTX_free)
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *key_context;

    return context
           && EVP_DigestVerifyInit(context, &key_context, signature_hash_of(signature->alg), NULL, key) == 1
           && signature_set_padding(key_context, signature->alg)
           && EVP_DigestVerify(context, bytes, length, signature->message, signature->message_length) == 1;
}

bool
bh_signature_verify(const struct bh_jwk *jwk, const struct bh_signature *signature)
{
    BH_AUTO(EVP_PKEY_free)
    EVP_PKEY *key = NULL;
    const uint8_t *bytes = signature->bytes;
    size_t length = signature->length;
    uint8_t der[DER_BYTES_MAX];
    bool good;

    BH_ASSERT(jwk->algs & BH_JWS_BIT(signature->alg));
    if (signature->alg == BH_JWS_ES256 || signature->alg == BH_JWS_ES384) {
        length = signature_to_der(signature, signature->alg == BH_JWS_ES256 ? 32 : 48, der);
        bytes = der;
        if (length == 0)
            return false;
    }
    key = signature_make_key(jwk);
    good = key && signature_verify(key, signature, bytes, length);
    ERR_clear_error();
    return good;
}

void
bh_signature_half_hash(enum bh_jws_alg alg, const char *text, char ret_hash[BH_HALF_HASH_MAX])
{
    const EVP_MD *hash = alg == BH_JWS_EDDSA ? EVP_sha512() : signature_hash_of(alg);
    uint8_t digest[EVP_MAX_MD_SIZE];
    struct bh_buf out;
    unsigned length;
    const char *done;

    BH_ASSERT(EVP_Digest(text, strlen(text), digest, &length, hash, NULL) == 1);
    bh_buf_init_fixed(&out, ret_hash, BH_HALF_HASH_MAX);
    bh_base64url_encode(&out, digest, length / 2);
    done = bh_buf_text(&out);
    BH_ASSERT(done);
}
