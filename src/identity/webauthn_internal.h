#ifndef BH_IDENTITY_WEBAUTHN_INTERNAL_H
#define BH_IDENTITY_WEBAUTHN_INTERNAL_H

#include "identity/webauthn.h"

/* The parts of webauthn.c. */

struct bh_webauthn_bytes {
    const uint8_t *bytes;
    size_t length;
};

/* Authenticator data (WebAuthn 3, 6.1), taken apart but for key and extensions. */
struct bh_webauthn_authenticator {
    const uint8_t *rp_hash; /* 32 bytes */
    uint8_t flags;
    uint32_t counter;
    const uint8_t *aaguid, *id; /* NULL without AT */
    size_t id_bytes;
};

/* Is this the client data of that ceremony?  Marks the ceremony used once the challenge
 * was right.  The faults of the client data, as bh_webauthn_register names them. */
BH_MUST_USE enum bh_identity_fault bh_webauthn_client_check(const struct bh_webauthn_site *site,
                                                            struct bh_webauthn *ceremony,
                                                            const struct bh_webauthn_bytes *client,
                                                            bh_ns now);

/* Move behind one map of CBOR (RFC 8949), as CTAP 2.1 section 8 allows it: definite lengths, no tags, at most
 * 4 deep.  False when the bytes are none or end too early. libcbor makes room for as many items as a map
 * claims to have (hostile bytes made it ask for 13 GB), so it only gets bytes that passed this check. */
BH_MUST_USE bool bh_webauthn_cbor_skip_map(struct bh_webauthn_bytes *left);

/* Take the key out of authenticator data with AT.  False: none of the accepted algorithms,
 * malformed, or no public key at all (a point off its curve). */
BH_MUST_USE bool bh_webauthn_key_read(const struct bh_webauthn_bytes *authenticator,
                                      struct bh_passkey *ret_passkey);

/* Signed bytes, their signature, and the site that they are for. */
struct bh_webauthn_signed {
    struct bh_webauthn_bytes client, authenticator, signature;
    const char *site; /* relying party id */
};

/* Did the passkey's owner sign this, present and verified? */
BH_MUST_USE bool bh_webauthn_key_verify(const struct bh_passkey *passkey,
                                        const struct bh_webauthn_signed *what);

#endif
