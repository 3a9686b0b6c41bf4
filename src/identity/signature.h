#ifndef BH_IDENTITY_SIGNATURE_H
#define BH_IDENTITY_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "identity/jwk.h"

/* Signatures and hashes of tokens over OpenSSL's EVP.  Verifying only: nothing here
 * signs. */

/* Does OpenSSL take the key: an RSA modulus and exponent that can be, a point on its
 * curve? */
bool bh_signature_key_check(const struct bh_jwk *key);

/* Is `signature` the key's signature of the message under `alg`?  The key's type must
 * fit the algorithm (bh_jwks_find sees to that); ECDSA signatures are r and s side by
 * side (RFC 7518), of the exact length. */
struct bh_signature {
    enum bh_jws_alg alg;
    const void *message;
    size_t message_length;
    const uint8_t *bytes;
    size_t length;
};
BH_MUST_USE bool bh_signature_verify(const struct bh_jwk *key, const struct bh_signature *signature);

enum { BH_HALF_HASH_MAX = 48 };

/* The at_hash or c_hash of a text under `alg`: the left half of the hash that the
 * algorithm signs with (SHA-512 for Ed25519), as NUL-terminated base64url. */
void bh_signature_half_hash(enum bh_jws_alg alg, const char *text, char ret_hash[BH_HALF_HASH_MAX]);

#endif
