#ifndef BH_IDENTITY_WEBAUTHN_H
#define BH_IDENTITY_WEBAUTHN_H

#include "identity/passkey.h"
#include "identity/secret.h"

/* Passkeys: the relying party's side of Web Authentication (W3C, level 3, 7.1 and 7.2),
 * without attestation, always with user verification.
 *
 * A ceremony is one question to a browser: its options go out as JSON, its answer comes
 * back as JSON, and it is answered once.  Everything that a signature does not cover by
 * itself is checked here: challenge, origin, relying party, flags, counter.  libfido2
 * reads keys and verifies signatures. */

enum {
    BH_WEBAUTHN_SECONDS = 300, /* from question to answer */
    BH_WEBAUTHN_HANDLE_MIN = 16,
    BH_WEBAUTHN_HANDLE_MAX = 64,
    BH_WEBAUTHN_CLIENT_MAX = 4096,        /* bytes of client data */
    BH_WEBAUTHN_AUTHENTICATOR_MAX = 2048, /* bytes of authenticator data */
    BH_WEBAUTHN_SIGNATURE_MAX = 512
};

/* The site that asks. */
struct bh_webauthn_site {
    const char *id;          /* relying party id: a domain, "gpu.example"; never changes,
                                or every passkey is lost */
    const char *name;        /* as text */
    struct bh_texts origins; /* "https://gpu.example"; one at least */
};

/* Whose passkey it is or becomes. */
struct bh_webauthn_user {
    uint8_t handle[BH_WEBAUTHN_HANDLE_MAX]; /* random, once for each account; never a name
                                               or an address: authenticators show it */
    uint32_t handle_bytes;
    const char *name; /* the account's, as text */
};

enum bh_webauthn_kind { BH_WEBAUTHN_CREATE, BH_WEBAUTHN_GET };

/* One question.  The caller keeps it on the server's side, bound to one session. */
struct bh_webauthn {
    enum bh_webauthn_kind kind;
    char challenge[BH_SECRET_TEXT];
    bh_ns begun;
    bool used;
};

/* A browser's answer: base64url texts but for the first and the last two of the list; NULL
 * where it has none. */
struct bh_webauthn_response {
    const char *challenge;          /* which ceremony it answers, where the caller keeps several */
    const char *authenticator_data; /* AuthenticatorAttestationResponse.getAuthenticatorData()
                                       or AuthenticatorAssertionResponse.authenticatorData */
    const char *client_data;        /* clientDataJSON */
    const char *credential;         /* rawId */
    const char *signature;          /* of an assertion */
    const char *user_handle;        /* of an assertion */
    const char *name;               /* what to call a new passkey */
    const char *transports;         /* getTransports() of a new one, joined by commas */
};

extern const struct bh_fields bh_webauthn_response_fields;

/* Ask something new, with 32 random bytes as challenge. */
void bh_webauthn_begin(struct bh_webauthn *ceremony, enum bh_webauthn_kind kind,
                       const uint8_t random[BH_SECRET_BYTES], bh_ns now);

/* Write what to call navigator.credentials.create with, as
 * PublicKeyCredentialCreationOptionsJSON; `known` are the account's passkeys, which no
 * authenticator shall make again. */
void bh_webauthn_put_creation(struct bh_buf *out, const struct bh_webauthn_site *site,
                              const struct bh_webauthn_user *user, const struct bh_passkeys *known,
                              const struct bh_webauthn *ceremony);

/* Write what to call navigator.credentials.get with, as
 * PublicKeyCredentialRequestOptionsJSON; one of `known` is asked for. */
void bh_webauthn_put_request(struct bh_buf *out, const struct bh_webauthn_site *site,
                             const struct bh_passkeys *known, const struct bh_webauthn *ceremony);

/* Read an answer from JSON; texts in the arena.  WEBAUTHN_JSON: it is no object of these
 * members, or lacks one that a ceremony of that kind needs, or has one of the other. */
BH_MUST_USE enum bh_identity_fault bh_webauthn_parse(const char *text, size_t length,
                                                     enum bh_webauthn_kind kind, struct bh_arena *arena,
                                                     struct bh_webauthn_response *ret_answer);

/* Take the answer to a creation.  The ceremony is used up when the challenge was the right
 * one, whatever else is wrong.
 *
 * On success `ret_passkey` is what to keep; the caller still refuses an id that any account
 * has already (PASSKEY_KNOWN), and more than BH_PASSKEYS_MAX (PASSKEY_MANY).  Faults:
 *   WEBAUTHN_ENCODING                             a text is not base64url, or too long
 *   WEBAUTHN_CLIENT, _TYPE, _CHALLENGE, _USED, _EXPIRED, _ORIGIN, _CROSS_ORIGIN,
 *   _TOKEN_BINDING                                the client data
 *   WEBAUTHN_AUTHENTICATOR, _RP, _PRESENT, _VERIFIED, _BACKUP, _KEY, _ID
 *                                                 the authenticator data
 *   PASSKEY_NAME                                  it cannot be called so */
BH_MUST_USE enum bh_identity_fault bh_webauthn_register(const struct bh_webauthn_site *site,
                                                        struct bh_webauthn *ceremony,
                                                        const struct bh_webauthn_response *answer, bh_ns now,
                                                        struct bh_passkey *ret_passkey);

/* What an assertion is held against. */
struct bh_webauthn_owner {
    const struct bh_webauthn_site *site;
    const struct bh_webauthn_user *user;
    struct bh_passkeys passkeys; /* of the user */
};

struct bh_webauthn_proof {
    struct bh_passkey passkey; /* as it is to be kept from now on: with the counter and the
                                  flags that were seen */
    bool cloned;               /* its counter did not grow, so it may have been copied */
};

/* Take the answer to a request.  The ceremony is used up as above.
 *
 * When a passkey looks cloned the caller asks for another factor and logs it.
 * Passkeys that are synced between devices do not count at all (0 for ever) and never look
 * cloned.  Faults: those of the client data, of the authenticator data but _KEY, and
 *   WEBAUTHN_UNKNOWN    the id is none of `owner->passkeys`
 *   WEBAUTHN_USER       the authenticator says that it belongs to another account
 *   WEBAUTHN_SIGNATURE  the signature is wrong
 * On failure `ret_proof` is untouched. */
BH_MUST_USE enum bh_identity_fault bh_webauthn_assert(const struct bh_webauthn_owner *owner,
                                                      struct bh_webauthn *ceremony,
                                                      const struct bh_webauthn_response *answer, bh_ns now,
                                                      struct bh_webauthn_proof *ret_proof);

#endif
