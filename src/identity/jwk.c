#include "identity/jwk.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"
#include "identity/signature.h"

static const char *const alg_names[BH_JWS_ALGS] = {
    [BH_JWS_RS256] = "RS256", [BH_JWS_PS256] = "PS256", [BH_JWS_ES256] = "ES256",
    [BH_JWS_ES384] = "ES384", [BH_JWS_EDDSA] = "EdDSA",
};

/* What distinguishes a key, and what it can verify. */
static const struct kind {
    const char *kty, *crv; /* crv NULL: none */
    enum bh_jwk_type type;
    uint32_t algs, point_bytes; /* point_bytes: of each coordinate */
    bool has_y;
} kinds[] = {
    { "RSA", NULL, BH_JWK_RSA, BH_JWS_BIT(BH_JWS_RS256) | BH_JWS_BIT(BH_JWS_PS256), 0, false },
    { "EC", "P-256", BH_JWK_P256, BH_JWS_BIT(BH_JWS_ES256), 32, true },
    { "EC", "P-384", BH_JWK_P384, BH_JWS_BIT(BH_JWS_ES384), 48, true },
    { "OKP", "Ed25519", BH_JWK_ED25519, BH_JWS_BIT(BH_JWS_EDDSA), 32, false },
};

const char *
bh_jws_alg_name(enum bh_jws_alg alg)
{
    BH_ASSERT(alg < BH_JWS_ALGS);
    return alg_names[alg];
}

enum bh_jws_alg
bh_jws_alg_find(const char *name)
{
    enum bh_jws_alg alg = 0;

    while (alg < BH_JWS_ALGS && strcmp(name, alg_names[alg]) != 0)
        alg++;
    return alg;
}

static const struct kind *
jwk_find_kind(bh_json_value key)
{
    const char *kty = bh_json_text(bh_json_get(key, "kty"), "");
    const char *crv = bh_json_text(bh_json_get(key, "crv"), "");

    for (size_t i = 0; i < BH_COUNT(kinds); i++)
        if (strcmp(kty, kinds[i].kty) == 0 && (!kinds[i].crv || strcmp(crv, kinds[i].crv) == 0))
            return &kinds[i];
    return NULL;
}

/* The bytes of a base64url member, at most `size`; 0 when there are none. */
static uint32_t
jwk_get_bytes(bh_json_value key, const char *name, void *ret_bytes, size_t size)
{
    const char *text = bh_json_text(bh_json_get(key, name), "");
    struct bh_buf bytes;

    bh_buf_init_fixed(&bytes, ret_bytes, size);
    if (!bh_base64url_decode(&bytes, text, strlen(text)))
        return 0;
    return (uint32_t)bytes.length;
}

/* May the key verify, as far as "use" and "key_ops" say? */
static bool
jwk_is_for_signatures(bh_json_value key)
{
    bh_json_value ops = bh_json_get(key, "key_ops");

    if (strcmp(bh_json_text(bh_json_get(key, "use"), "sig"), "sig") != 0)
        return false;
    for (size_t i = 0; i < bh_json_count(ops); i++)
        if (strcmp(bh_json_text(bh_json_at(ops, i), ""), "verify") == 0)
            return true;
    return !ops;
}

/* The members whose type must be right before anything else is asked. */
static bool
jwk_has_good_types(bh_json_value key)
{
    static const char *const texts[] = { "kty", "crv", "kid", "use", "alg" };

    for (size_t i = 0; i < BH_COUNT(texts); i++) {
        bh_json_value value = bh_json_get(key, texts[i]);

        if (value && bh_json_kind(value) != BH_JSON_STRING)
            return false;
    }
    return bh_json_kind(key) == BH_JSON_OBJECT && bh_json_get(key, "kty")
           && (!bh_json_get(key, "key_ops") || bh_json_kind(bh_json_get(key, "key_ops")) == BH_JSON_ARRAY)
           && strlen(bh_json_text(bh_json_get(key, "kid"), "")) <= BH_JWK_KID_MAX;
}

static enum bh_identity_fault
jwk_read_rsa(bh_json_value json, struct bh_jwk *key, bool *ret_weak)
{
    key->n_length = jwk_get_bytes(json, "n", key->n, sizeof key->n);
    key->e_length = jwk_get_bytes(json, "e", key->e, sizeof key->e);
    if (key->n_length == 0 || key->e_length == 0 || key->n[0] == 0 || key->e[0] == 0)
        return BH_FAULT_JWKS_KEY;
    *ret_weak =
        key->n_length < BH_JWK_RSA_BYTES_MIN || (key->n_length == BH_JWK_RSA_BYTES_MIN && key->n[0] < 0x80);
    return BH_FAULT_NONE;
}

static enum bh_identity_fault
jwk_read_point(bh_json_value json, const struct kind *kind, struct bh_jwk *key)
{
    if (jwk_get_bytes(json, "x", key->x, sizeof key->x) != kind->point_bytes)
        return BH_FAULT_JWKS_KEY;
    if (kind->has_y && jwk_get_bytes(json, "y", key->y, sizeof key->y) != kind->point_bytes)
        return BH_FAULT_JWKS_KEY;
    return BH_FAULT_NONE;
}

/* Read one entry; *ret_use says whether it belongs into the set. */
static enum bh_identity_fault
jwk_read_key(bh_json_value json, struct bh_jwk *key, bool *ret_use)
{
    const char *alg = bh_json_text(bh_json_get(json, "alg"), NULL);
    const struct kind *kind;
    enum bh_identity_fault fault;
    bool weak = false;

    *ret_use = false;
    if (!jwk_has_good_types(json))
        return BH_FAULT_JWKS_KEY;
    kind = jwk_find_kind(json);
    if (!kind || !jwk_is_for_signatures(json))
        return BH_FAULT_NONE;
    if (bh_json_get(json, "d"))
        return BH_FAULT_JWKS_PRIVATE;
    *key = (struct bh_jwk){ .type = kind->type, .algs = kind->algs };
    if (alg)
        key->algs &= bh_jws_alg_find(alg) < BH_JWS_ALGS ? BH_JWS_BIT(bh_jws_alg_find(alg)) : 0;
    memcpy(key->kid, bh_json_text(bh_json_get(json, "kid"), ""),
           strlen(bh_json_text(bh_json_get(json, "kid"), "")));
    fault = kind->type == BH_JWK_RSA ? jwk_read_rsa(json, key, &weak) : jwk_read_point(json, kind, key);
    if (fault == BH_FAULT_NONE && !weak && !bh_signature_key_check(key))
        fault = BH_FAULT_JWKS_KEY;
    *ret_use = fault == BH_FAULT_NONE && !weak && key->algs != 0;
    return fault;
}

static bool
jwk_has_same(const struct bh_jwks *jwks, const struct bh_jwk *key)
{
    for (uint32_t i = 0; i < jwks->count; i++)
        if (jwks->keys[i].type == key->type && strcmp(jwks->keys[i].kid, key->kid) == 0 && key->kid[0])
            return true;
    return false;
}

static enum bh_identity_fault
jwk_read_set(bh_json_value keys, struct bh_jwks *jwks)
{
    if (bh_json_kind(keys) != BH_JSON_ARRAY)
        return BH_FAULT_JWKS_JSON;
    if (bh_json_count(keys) > BH_JWKS_KEYS_MAX)
        return BH_FAULT_JWKS_MANY;
    for (size_t i = 0; i < bh_json_count(keys); i++) {
        struct bh_jwk *key = &jwks->keys[jwks->count];
        bool use;
        enum bh_identity_fault fault = jwk_read_key(bh_json_at(keys, i), key, &use);

        if (fault != BH_FAULT_NONE)
            return fault;
        if (use && jwk_has_same(jwks, key))
            return BH_FAULT_JWKS_DUPLICATE;
        jwks->count += use;
        jwks->ignored += !use;
    }
    return jwks->count ? BH_FAULT_NONE : BH_FAULT_JWKS_EMPTY;
}

enum bh_identity_fault
bh_jwks_parse(const char *text, size_t length, struct bh_jwks *ret_jwks)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_jwks *jwks;
    enum bh_identity_fault fault;
    struct bh_err err;

    if (length > BH_JWKS_BYTES_MAX || bh_json_parse(text, length, &json, &err) != BH_OK)
        return BH_FAULT_JWKS_JSON;
    jwks = calloc(1, sizeof *jwks);
    BH_ASSERT(jwks);
    fault = jwk_read_set(bh_json_get(bh_json_root(json), "keys"), jwks);
    if (fault == BH_FAULT_NONE)
        *ret_jwks = *jwks;
    free(jwks);
    return fault;
}

enum bh_identity_fault
bh_jwks_find(const struct bh_jwks *jwks, enum bh_jws_alg alg, const char *kid, const struct bh_jwk **ret_key)
{
    const struct bh_jwk *found = NULL;
    bool same_kid = false;

    for (uint32_t i = 0; i < jwks->count; i++) {
        const struct bh_jwk *key = &jwks->keys[i];

        if (kid[0] && strcmp(kid, key->kid) != 0)
            continue;
        same_kid = true;
        if (!(key->algs & BH_JWS_BIT(alg)))
            continue;
        if (found)
            return BH_FAULT_KEY_AMBIGUOUS;
        found = key;
    }
    if (!found)
        return kid[0] && same_kid ? BH_FAULT_KEY_MISMATCH : BH_FAULT_KEY_UNKNOWN;
    *ret_key = found;
    return BH_FAULT_NONE;
}
