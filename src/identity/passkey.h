#ifndef BH_IDENTITY_PASSKEY_H
#define BH_IDENTITY_PASSKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/fields.h"
#include "base/time.h"
#include "identity/fault.h"

/* Passkeys as they are kept: public halves of WebAuthn credentials.  Nothing in here is
 * secret.  Plain values; ids and keys are base64url texts, which our strict reader makes
 * equal exactly when their bytes are. */

enum {
    BH_PASSKEY_ID_BYTES_MAX = 1023, /* WebAuthn 2, 7.1 */
    BH_PASSKEY_ID_TEXT = 1365,      /* of that many bytes, and a NUL */
    BH_PASSKEY_KEY_BYTES_MAX = 259,
    BH_PASSKEY_KEY_TEXT = 347,
    BH_PASSKEY_NAME_MAX = 64,
    BH_PASSKEY_TRANSPORTS_MAX = 63,
    BH_PASSKEYS_MAX = 16, /* of one account */
    BH_PASSKEY_JSON_MAX = 2560
};

/* The signatures that authenticators may make; their COSE numbers are -7, -8 and -257. */
enum bh_passkey_alg {
    BH_PASSKEY_ES256,
    BH_PASSKEY_EDDSA, /* Ed25519 */
    BH_PASSKEY_RS256, /* 2048 bits with the exponent in 3 bytes, as TPMs make them */
    BH_PASSKEY_ALGS
};

/* Bits of authenticator data's flags (WebAuthn 3, 6.1). */
enum {
    BH_PASSKEY_PRESENT = 0x01,  /* UP: it was touched */
    BH_PASSKEY_VERIFIED = 0x04, /* UV: and proved to be its owner */
    BH_PASSKEY_SYNCABLE = 0x08, /* BE: may be copied to other devices; never changes */
    BH_PASSKEY_SYNCED = 0x10,   /* BS: and is */
    BH_PASSKEY_ATTESTED = 0x40, /* AT: a new credential follows */
    BH_PASSKEY_EXTENDED = 0x80  /* ED: extensions follow */
};

struct bh_passkey {
    char id[BH_PASSKEY_ID_TEXT];
    enum bh_passkey_alg alg;
    char key[BH_PASSKEY_KEY_TEXT];      /* ES256: x, y; EdDSA: x; RS256: n, e; big-endian */
    uint32_t counter;                   /* signatures, as its authenticator counts; 0: it does not */
    uint32_t flags;                     /* as they were last seen */
    uint8_t aaguid[16];                 /* the make of authenticator, as it says; zeros: unsaid */
    bh_ns created, used;                /* used: for signing in; 0: never */
    char name[BH_PASSKEY_NAME_MAX + 1]; /* what its owner calls it; never "" */
    char transports[BH_PASSKEY_TRANSPORTS_MAX + 1]; /* "internal,hybrid": how browsers reach
                                                       it, as one said; "": unsaid */
};

/* Passkeys of one account, borrowed. */
struct bh_passkeys {
    const struct bh_passkey *items;
    uint32_t count;
};

extern const struct bh_fields bh_passkey_fields;

/* "ES256"; never NULL. */
const char *bh_passkey_alg_name(enum bh_passkey_alg alg);

/* The algorithm's number in RFC 9053's registry. */
int32_t bh_passkey_alg_cose(enum bh_passkey_alg alg);

/* How many bytes a public key of that algorithm has. */
size_t bh_passkey_key_bytes(enum bh_passkey_alg alg);

/* Can a passkey be called so?  1 to BH_PASSKEY_NAME_MAX bytes of UTF-8 without control
 * characters. */
bool bh_passkey_name_check(const char *name);

/* Are these transports?  Small letters and dashes, joined by commas; "" is none. */
bool bh_passkey_transports_check(const char *transports);

/* The passkey of that id, or NULL. */
const struct bh_passkey *bh_passkeys_find(const struct bh_passkeys *passkeys, const char *id);

/* Write a passkey as canonical JSON, at most BH_PASSKEY_JSON_MAX bytes. */
void bh_passkey_encode(struct bh_buf *out, const struct bh_passkey *passkey);

/* Read what bh_passkey_encode wrote.  PASSKEY_STORED: it is something else, or an id, key
 * or name in it is none; `ret_passkey` then holds nothing of use. */
BH_MUST_USE enum bh_identity_fault bh_passkey_decode(const char *text, size_t length, struct bh_arena *arena,
                                                     struct bh_passkey *ret_passkey);

#endif
