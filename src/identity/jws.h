#ifndef BH_IDENTITY_JWS_H
#define BH_IDENTITY_JWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "identity/jwk.h"

/* Signed tokens: JSON web signatures (RFC 7515) in the compact form, verified only.
 *
 * The payload comes out of bh_jws_read alone, so that none is read whose signature
 * was not checked.  What a header says about where to find a key (jku, x5u, jwk, x5c)
 * is ignored: keys come from the provider's own key set. */

enum { BH_JWS_BYTES_MAX = 64 * 1024, BH_JWS_HEADER_MAX = 4096, BH_JWS_TYPE_MAX = 63 };

struct bh_jws {
    const char *text; /* the caller's; must live as long as this */
    size_t payload_at, payload_length, signature_at, signature_length;
    enum bh_jws_alg alg;
    char kid[BH_JWK_KID_MAX + 1];   /* "": the header has none */
    char type[BH_JWS_TYPE_MAX + 1]; /* typ; "": the header has none */
};

/* Take a token apart and check its header.  `algs` are the BH_JWS_BITs of the client's
 * registration.  Faults: TOKEN_SIZE, TOKEN_FORM, TOKEN_ENCODING, HEADER_*, ALG_*,
 * KID_INVALID; HEADER_TYPE for a typ that is no text or too long.  `ret_jws` is
 * untouched on failure. */
BH_MUST_USE enum bh_identity_fault bh_jws_parse(const char *text, size_t length, uint32_t algs,
                                                struct bh_jws *ret_jws);

/* Whose signatures are good: the provider's keys, and the client's registration. */
struct bh_jws_trust {
    const struct bh_jwks *jwks;
    uint32_t algs; /* BH_JWS_BITs */
};

/* All of it: take the token apart, find the key, verify, and append the payload to `payload`, which
 * must have room for BH_JWS_BYTES_MAX bytes more.  Faults of bh_jws_parse and bh_jwks_find
 * (KEY_UNKNOWN is the one that a fresh key set may cure), and
 *   KEY_MISMATCH    the key is not for the token's algorithm
 *   SIGNATURE       not the key's signature
 *   TOKEN_ENCODING  the payload is not base64url
 * On failure nothing is appended. */
BH_MUST_USE enum bh_identity_fault bh_jws_read(const char *text, size_t length,
                                               const struct bh_jws_trust *trust, struct bh_jws *ret_jws,
                                               struct bh_buf *payload);

#endif
