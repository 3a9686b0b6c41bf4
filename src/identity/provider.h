#ifndef BH_IDENTITY_PROVIDER_H
#define BH_IDENTITY_PROVIDER_H

#include "base/arena.h"
#include "base/buf.h"
#include "identity/jwk.h"
#include "ports/https.h"

/* An OpenID provider as its discovery document describes it. */

enum { BH_URL_MAX = 1023 };

struct bh_provider {
    char issuer[BH_URL_MAX + 1];
    char authorization[BH_URL_MAX + 1], token[BH_URL_MAX + 1], jwks[BH_URL_MAX + 1];
    char device[BH_URL_MAX + 1], end_session[BH_URL_MAX + 1], userinfo[BH_URL_MAX + 1];
    /* "": it has none */
    char token_mtls[BH_URL_MAX + 1], device_mtls[BH_URL_MAX + 1];
    /* for clients with a certificate (RFC 8705, 5); "": the same as others */
    uint32_t algs;      /* BH_JWS_BITs that it signs with and Bulkhead accepts */
    bool iss_parameter; /* its answers name it (RFC 9207) */
};

/* Bulkhead's identity at the provider, and its proof: with a secret (client_secret_basic), with a key
 * (private_key_jwt), with a certificate (tls_client_auth, self_signed_tls_client_auth), or not at all: a
 * public client, with PKCE alone. */
struct bh_relying_party {
    const char *id;
    const char *secret;      /* NULL: none */
    const char *assertion;   /* of bh_assertion_make, for this one request; NULL: none */
    const char *certificate; /* its name in the process that asks; NULL: none */
    const char *redirect;    /* the exact address that was registered */
    const char *scope;       /* "openid profile groups" */
    bool loopback;           /* http://127.0.0.1 will do: a provider on this machine */
};

/* Is it an https address with a host, without user, fragment, blanks or control
 * characters, and of at most BH_URL_MAX bytes?  With `loopback` also http://127.0.0.1 and
 * http://localhost. */
bool bh_url_check(const char *url, bool loopback);

/* Ask for the discovery document.  The text lives in the arena; BH_FULL when it has no
 * room, BH_INVALID when the issuer is no address. */
BH_MUST_USE bh_rc bh_provider_ask(const char *issuer, bool loopback, struct bh_arena *arena,
                                  struct bh_https_request *ret_request, struct bh_err *err);

/* Read the answer: DISCOVERY_*, or PROVIDER_DOWN for a status other than 200.
 * `ret_provider` is untouched on failure, so the last good one stays in use. */
BH_MUST_USE enum bh_identity_fault bh_provider_receive(const struct bh_https_response *answer,
                                                       const char *issuer, bool loopback,
                                                       struct bh_provider *ret_provider);

/* Where this client asks for tokens, and for device codes ("": nowhere). */
const char *bh_provider_token_url(const struct bh_provider *provider, const struct bh_relying_party *client);
const char *bh_provider_device_url(const struct bh_provider *provider, const struct bh_relying_party *client);

/* Fill a POST to `url`: authenticates the client and moves the form, which is not empty,
 * into the arena.  A secret goes into the header; without one the client's id goes into the
 * form, with the assertion where there is one.  The client has no secret and assertion at a
 * time: a provider must refuse that (RFC 6749, 2.3).  BH_FULL: no room. */
BH_MUST_USE bh_rc bh_provider_post(const char *url, const struct bh_relying_party *client,
                                   struct bh_buf *form, struct bh_arena *arena,
                                   struct bh_https_request *ret_request);

#endif
