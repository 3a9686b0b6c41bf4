#ifndef BH_IDENTITY_FIXTURE_TEST_H
#define BH_IDENTITY_FIXTURE_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "identity/jwk.h"

/* A provider's keys and tokens for tests: what src/identity can only verify is signed
 * here.  Texts are the fixture's until the next call that returns one of that kind. */

enum bh_test_key {
    BH_TEST_RSA,
    BH_TEST_RSA_OTHER,
    BH_TEST_P256,
    BH_TEST_P384,
    BH_TEST_ED25519,
    BH_TEST_RSA_SHORT, /* 1024 bits */
    BH_TEST_KEYS
};

/* Make the keys, once: set-up and tear-down of a group of tests.  0. */
int bh_test_keys_init(void **state);
int bh_test_keys_fini(void **state);

/* The public key as JSON, with `extra` (",\"kid\":\"a\"" or "") before the brace. */
const char *bh_test_jwk(enum bh_test_key key, const char *extra);

/* The private key as PEM. */
const char *bh_test_pem(enum bh_test_key key);

/* The fixed set of all good keys, with the kids "rsa", "rsa-other", "p256", "p384" and
 * "ed". */
const struct bh_jwks *bh_test_jwks(void);

/* The token of that header and payload, signed with `key` under `alg`, whatever the
 * header says; alg BH_JWS_ALGS leaves the signature empty. */
const char *bh_test_sign(enum bh_test_key key, enum bh_jws_alg alg, const char *header, const char *payload);

/* The same with the RSA key under PS256, with a salt of that many bytes. */
const char *bh_test_sign_pss(const char *header, const char *payload, int salt_bytes);

/* The same, signed with HMAC-SHA-256 and the RSA public key in PEM as the secret. */
const char *bh_test_sign_hmac(const char *header, const char *payload);

#endif
