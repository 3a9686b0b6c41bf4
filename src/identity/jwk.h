#ifndef BH_IDENTITY_JWK_H
#define BH_IDENTITY_JWK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "identity/fault.h"

/* An identity provider's public keys: JSON web keys (RFC 7517) of the types that sign
 * tokens.  Plain values; the keys are checked when they are read, so that a key in a
 * set can always be used. */

enum {
    BH_JWKS_KEYS_MAX = 32,
    BH_JWKS_BYTES_MAX = 256 * 1024,
    BH_JWK_KID_MAX = 255,
    BH_JWK_RSA_BYTES_MIN = 256, /* 2048 bits */
    BH_JWK_RSA_BYTES_MAX = 512  /* 4096 bits: checking and verifying must stay cheap */
};

/* The signatures that are accepted at all.  Bit masks are made with BH_JWS_BIT. */
enum bh_jws_alg {
    BH_JWS_RS256,
    BH_JWS_PS256,
    BH_JWS_ES256,
    BH_JWS_ES384,
    BH_JWS_EDDSA, /* Ed25519 */
    BH_JWS_ALGS
};
#define BH_JWS_BIT(alg) (1u << (alg))
#define BH_JWS_ALL ((1u << BH_JWS_ALGS) - 1)

enum bh_jwk_type { BH_JWK_RSA, BH_JWK_P256, BH_JWK_P384, BH_JWK_ED25519 };

struct bh_jwk {
    enum bh_jwk_type type;
    uint32_t algs;                         /* BH_JWS_BITs that the key may be used with */
    char kid[BH_JWK_KID_MAX + 1];          /* "": the key has no id */
    uint8_t n[BH_JWK_RSA_BYTES_MAX], e[8]; /* RSA, big-endian */
    uint32_t n_length, e_length;
    uint8_t x[48], y[48]; /* the point, padded to the curve's size; Ed25519: x */
};

struct bh_jwks {
    struct bh_jwk keys[BH_JWKS_KEYS_MAX];
    uint32_t count;
    uint32_t ignored; /* of a type, use or strength that verifies no token */
};

/* "RS256"; never NULL. */
const char *bh_jws_alg_name(enum bh_jws_alg alg);

/* The algorithm of that name, BH_JWS_ALGS when it is none of the list. */
enum bh_jws_alg bh_jws_alg_find(const char *name);

/* Read a key set.  Keys of another type, curve, algorithm or use are passed over, as
 * RFC 7517 section 5 asks, and so are RSA keys below 2048 bits; unknown members are
 * ignored.  A wrong key of a known type makes the whole set refused, because the
 * provider then does not know what it publishes:
 *   JWKS_JSON       no JSON object with a list "keys", or larger than BH_JWKS_BYTES_MAX
 *   JWKS_MANY       more than BH_JWKS_KEYS_MAX entries
 *   JWKS_KEY        a member missing, of a wrong type or length; a point off its curve
 *   JWKS_PRIVATE    a key with its private part
 *   JWKS_DUPLICATE  two keys with the same type and id
 *   JWKS_EMPTY      no key is left
 * `ret_jwks` is untouched on failure. */
BH_MUST_USE enum bh_identity_fault bh_jwks_parse(const char *text, size_t length, struct bh_jwks *ret_jwks);

/* The key to verify a token with: the one of that id whose type and algorithm fit; for
 * a token without id (`kid` "") the only one that fits.
 *   KEY_UNKNOWN    no key of that id, or none at all fits: a fresh key set may have it
 *   KEY_MISMATCH   the key of that id is for other algorithms
 *   KEY_AMBIGUOUS  no id, and several keys fit */
BH_MUST_USE enum bh_identity_fault bh_jwks_find(const struct bh_jwks *jwks, enum bh_jws_alg alg,
                                                const char *kid, const struct bh_jwk **ret_key);

#endif
