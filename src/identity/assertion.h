#ifndef BH_IDENTITY_ASSERTION_H
#define BH_IDENTITY_ASSERTION_H

#include "base/arena.h"
#include "base/err.h"
#include "base/time.h"
#include "identity/secret.h"

/* Proof that we hold the client's key: a signed token for one request (RFC 7523; OpenID
 * Connect Core 1.0, section 9, private_key_jwt).  With a key instead of a secret the
 * provider keeps nothing that could sign in as this client. */
struct bh_assertion_key;

enum { BH_ASSERTION_SECONDS = 60 };

/* A private key in PEM, without a pass phrase: RSA of 2048 to 4096 bits signs RS256, P-256
 * signs ES256.  `kid` is the id under which the provider has the public key; NULL: none.
 * BH_INVALID: the text is no such key.  Any number of threads may use it at a time. */
BH_MUST_USE bh_rc bh_assertion_key_open(const char *pem, size_t length, const char *kid,
                                        struct bh_assertion_key **ret_key, struct bh_err *err);
void bh_assertion_key_free(struct bh_assertion_key *key);
BH_AUTO_DEFINE(struct bh_assertion_key *, bh_assertion_key_free)

struct bh_assertion_request {
    const char *client;    /* our id */
    const char *audience;  /* the token endpoint, or what the provider says it wants */
    const uint8_t *random; /* BH_SECRET_BYTES of them, fresh: a provider takes each once */
    bh_ns now;
};

/* An assertion that is good for BH_ASSERTION_SECONDS.  The text lives in the arena.
 * BH_FULL: no room; BH_BUG: OpenSSL refused to sign. */
BH_MUST_USE bh_rc bh_assertion_make(const struct bh_assertion_key *key,
                                    const struct bh_assertion_request *request, struct bh_arena *arena,
                                    const char **ret_text, struct bh_err *err);

#endif
