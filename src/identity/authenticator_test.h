#ifndef BH_IDENTITY_AUTHENTICATOR_TEST_H
#define BH_IDENTITY_AUTHENTICATOR_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "identity/webauthn.h"

/* An authenticator and the browser before it, in software, for tests.  Everything that it
 * says is a field, so that a test can change one at a time. */

struct bh_test_authenticator {
    enum bh_passkey_alg alg;
    void *key; /* of OpenSSL */
    uint8_t id[BH_PASSKEY_ID_BYTES_MAX];
    uint32_t id_bytes;
    uint8_t aaguid[16];
    uint32_t counter;
    uint8_t flags;      /* of the next answer, but AT */
    const char *site;   /* relying party id */
    const char *origin; /* the page's */
    const char *type;   /* NULL: the right one */
    const char *more;   /* members of the client data behind the others; ",\"a\":1" or "" */
};

/* A good one for the site "gpu.example" at "https://gpu.example", with a fresh key and a
 * credential id of 32 bytes. */
void bh_test_authenticator_init(struct bh_test_authenticator *device, enum bh_passkey_alg alg);
void bh_test_authenticator_fini(struct bh_test_authenticator *device);

/* What comes out, decoded; change it, then bh_test_response_encode it. */
struct bh_test_response {
    uint8_t client[BH_WEBAUTHN_CLIENT_MAX + 8];
    size_t client_bytes;
    uint8_t authenticator[BH_WEBAUTHN_AUTHENTICATOR_MAX + 8];
    size_t authenticator_bytes;
    uint8_t signature[BH_WEBAUTHN_SIGNATURE_MAX + 8];
    size_t signature_bytes; /* 0: a new credential */
    uint8_t id[BH_PASSKEY_ID_BYTES_MAX];
    size_t id_bytes;
    uint8_t user[BH_WEBAUTHN_HANDLE_MAX + 8];
    size_t user_bytes; /* 0: none */
    char texts[5][8192];
};

/* Make a credential, or sign (which counts), for that challenge. */
void bh_test_create(struct bh_test_authenticator *device, const char *challenge,
                    struct bh_test_response *ret_response);
void bh_test_get(struct bh_test_authenticator *device, const char *challenge,
                 const struct bh_webauthn_user *user, struct bh_test_response *ret_response);

/* The response as its browser sends it; texts are the response's. */
struct bh_webauthn_response bh_test_response_encode(struct bh_test_response *response);

/* The same as JSON. */
void bh_test_response_put_json(struct bh_test_response *response, struct bh_buf *out);

#endif
