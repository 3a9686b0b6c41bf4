#include "identity/assertion.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"

enum { TEXT_MAX = 8192, SIGNATURE_MAX = 512, HALF = 32 };

BH_AUTO_DEFINE(EVP_MD_CTX *, EVP_MD_CTX_free)
BH_AUTO_DEFINE(ECDSA_SIG *, ECDSA_SIG_free)

struct bh_assertion_key {
    EVP_PKEY *key;
    bool ec;
    char *kid; /* NULL: none */
};

/* ---- the key ---- */

/* No user is present to type one. */
static int
assertion_no_pass_phrase(char *text, int size, int writing, void *self)
{
    return 0;
}

static bool
assertion_fits(EVP_PKEY *key, bool *ret_ec)
{
    char curve[32] = "";

    *ret_ec = EVP_PKEY_is_a(key, "EC");
    if (*ret_ec)
        return EVP_PKEY_get_group_name(key, curve, sizeof curve, NULL) == 1
               && strcmp(curve, "prime256v1") == 0;
    return EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_get_bits(key) >= 2048
           && EVP_PKEY_get_bits(key) <= 8 * SIGNATURE_MAX;
}

bh_rc
bh_assertion_key_open(const char *pem, size_t length, const char *kid, struct bh_assertion_key **ret_key,
                      struct bh_err *err)
{
    BIO *bio = length <= INT32_MAX ? BIO_new_mem_buf(pem, (int)length) : NULL;
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, assertion_no_pass_phrase, NULL) : NULL;
    struct bh_assertion_key *key;
    bool ec;

    BIO_free(bio);
    ERR_clear_error();
    if (!pkey)
        return bh_err_set(err, BH_INVALID, "not a private key in PEM without a pass phrase");
    if (!assertion_fits(pkey, &ec)) {
        EVP_PKEY_free(pkey);
        return bh_err_set(err, BH_INVALID,
                          "the key is neither RSA of 2048 to 4096 bits nor "
                          "P-256");
    }
    key = calloc(1, sizeof *key);
    BH_ASSERT(key);
    key->key = pkey;
    key->ec = ec;
    key->kid = kid ? strdup(kid) : NULL;
    BH_ASSERT(key->kid || !kid);
    *ret_key = key;
    return BH_OK;
}

void
bh_assertion_key_free(struct bh_assertion_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->key);
    free(key->kid);
    free(key);
}

/* ---- the token ---- */

static void
assertion_put_part(struct bh_buf *out, const struct bh_buf *json)
{
    bh_base64url_encode(out, json->bytes, json->length);
    out->overflow |= json->overflow;
}

static void
assertion_put_header(struct bh_buf *out, const struct bh_assertion_key *key)
{
    char memory[1024];
    struct bh_json_writer w;
    struct bh_buf json;

    bh_buf_init_fixed(&json, memory, sizeof memory);
    w = bh_json_begin(&json);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "alg", key->ec ? "ES256" : "RS256");
    if (key->kid)
        bh_json_str(&w, "kid", key->kid);
    bh_json_str(&w, "typ", "JWT");
    bh_json_close(&w, '}');
    assertion_put_part(out, &json);
}

static void
assertion_put_claims(struct bh_buf *out, const struct bh_assertion_request *request)
{
    uint64_t now_s = request->now / BH_NS_PER_S;
    char memory[TEXT_MAX / 2], id[BH_SECRET_TEXT];
    struct bh_json_writer w;
    struct bh_buf json;

    bh_secret_text(request->random, id);
    bh_buf_init_fixed(&json, memory, sizeof memory);
    w = bh_json_begin(&json);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "aud", request->audience);
    bh_json_u64(&w, "exp", now_s + BH_ASSERTION_SECONDS);
    bh_json_u64(&w, "iat", now_s);
    bh_json_str(&w, "iss", request->client);
    bh_json_str(&w, "jti", id);
    bh_json_str(&w, "sub", request->client);
    bh_json_close(&w, '}');
    assertion_put_part(out, &json);
}

/* DER becomes r and s side by side (RFC 7518, 3.4). */
static bool
assertion_from_der(uint8_t *bytes, size_t *length)
{
    const unsigned char *at = bytes;
    BH_AUTO(ECDSA_SIG_free)
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)*length);

    *length = (size_t)2 * HALF;
    return pair && BN_bn2binpad(ECDSA_SIG_get0_r(pair), bytes, HALF) == HALF
           && BN_bn2binpad(ECDSA_SIG_get0_s(pair), bytes + HALF, HALF) == HALF;
}

static bool
assertion_sign(const struct bh_assertion_key *key, const struct bh_buf *message, uint8_t *ret_bytes,
               size_t *ret_length)
{
    BH_AUTO(EVP_MD_CTX_free)
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool signed_it;

    *ret_length = SIGNATURE_MAX;
    signed_it =
        context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key->key) == 1
        && EVP_DigestSign(context, ret_bytes, ret_length, (const uint8_t *)message->bytes, message->length)
               == 1
        && (!key->ec || assertion_from_der(ret_bytes, ret_length));
    ERR_clear_error();
    return signed_it;
}

bh_rc
bh_assertion_make(const struct bh_assertion_key *key, const struct bh_assertion_request *request,
                  struct bh_arena *arena, const char **ret_text, struct bh_err *err)
{
    char memory[TEXT_MAX];
    uint8_t signature[SIGNATURE_MAX];
    struct bh_buf out;
    const char *text;
    size_t length;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    assertion_put_header(&out, key);
    bh_buf_putc(&out, '.');
    assertion_put_claims(&out, request);
    if (!out.overflow && !assertion_sign(key, &out, signature, &length))
        return bh_err_set(err, BH_BUG, "cannot sign the client's assertion");
    bh_buf_putc(&out, '.');
    if (!out.overflow)
        bh_base64url_encode(&out, signature, length);
    text = bh_buf_text(&out) ? bh_arena_strdup(arena, bh_buf_text(&out)) : NULL;
    if (!text)
        return bh_err_set(err, BH_FULL, "the client's assertion is too long");
    *ret_text = text;
    return BH_OK;
}
