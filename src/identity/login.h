#ifndef BH_IDENTITY_LOGIN_H
#define BH_IDENTITY_LOGIN_H

#include "base/time.h"
#include "identity/id_token.h"
#include "identity/provider.h"
#include "identity/secret.h"

/* A sign-in by authorization code with PKCE, from the redirect to the tokens.  A login is
 * a plain value that the caller keeps on the server's side, found by a cookie that only
 * this browser has; the code verifier and the nonce never leave it before they are due. */

enum {
    BH_LOGIN_RANDOM = 3 * BH_SECRET_BYTES,
    BH_LOGIN_SECONDS = 600, /* from redirect to answer */
    BH_CODE_MAX = 2047,
    BH_LOGIN_ERROR_MAX = 64,
    BH_TOKEN_TEXT_MAX = 16384 /* access and refresh tokens */
};

struct bh_login {
    char state[BH_SECRET_TEXT], nonce[BH_SECRET_TEXT], verifier[BH_SECRET_TEXT];
    bh_ns begun;
    bool used;
    char code[BH_CODE_MAX + 1];         /* what came back; "": nothing did */
    char error[BH_LOGIN_ERROR_MAX + 1]; /* or the provider's error code */
};

/* What the person must show again for a step-up; zero asks nothing. */
struct bh_login_request {
    bool fresh; /* prompt=login, and no older than max_age_s */
    uint32_t max_age_s;
    const char *acr_values; /* NULL: none */
    const char *hint;       /* login_hint; NULL: none */
};

/* Begin: fill the login from random bytes, and write the address to send the browser to.
 * BH_FULL: `url` has no room. */
BH_MUST_USE bh_rc bh_login_begin(const struct bh_provider *provider, const struct bh_relying_party *client,
                                 const struct bh_login_request *request, struct bh_login *login,
                                 struct bh_buf *url);

/* Fill a login's secrets.  A step of its own, so that bh_login_begin needs no randomness.
 */
void bh_login_init(struct bh_login *login, const uint8_t random[BH_LOGIN_RANDOM], bh_ns now);

/* The browser came back with this query.  The state counts once: when it is the right one
 * the login is used up, whatever else is wrong.  Faults: FORM*, STATE_*, CALLBACK_*.  On
 * success `code` is filled; with CALLBACK_ERROR `error` is, where it is a code in small
 * letters as RFC 6749 has them, else it stays "": nothing else of the provider's text is
 * kept. */
BH_MUST_USE enum bh_identity_fault
bh_login_callback(struct bh_login *login, const struct bh_provider *provider, const char *query, bh_ns now);

/* Ask for the tokens of the code that came back.  The request lives in the arena; BH_FULL:
 * no room. */
BH_MUST_USE bh_rc bh_login_ask(const struct bh_login *login, const struct bh_provider *provider,
                               const struct bh_relying_party *client, struct bh_arena *arena,
                               struct bh_https_request *ret_request);

/* What a token endpoint gave; texts in the arena, NULL where it gave none. */
struct bh_tokens {
    const char *access, *id, *refresh;
    uint64_t expires_s; /* of the access token; 0: not said */
};

/* Read the token endpoint's answer: PROVIDER_DOWN, RESPONSE_*, GRANT_REFUSED,
 * CLIENT_REFUSED.  Without `id_token_needed` (a refresh) the ID token may be missing. */
BH_MUST_USE enum bh_identity_fault bh_tokens_receive(const struct bh_https_response *answer,
                                                     bool id_token_needed, struct bh_arena *arena,
                                                     struct bh_tokens *ret_tokens);

/* Ask for new tokens.  A provider that rotates gives a new refresh token, which replaces
 * the old one; one that does not gives none, and the old one stays.  GRANT_REFUSED then
 * means that the session must end: a token used twice is revoked with all that came of
 * it.  BH_FULL: no room. */
BH_MUST_USE bh_rc bh_refresh_ask(const struct bh_provider *provider, const struct bh_relying_party *client,
                                 const char *refresh, struct bh_arena *arena,
                                 struct bh_https_request *ret_request);

/* The user's details, unsigned: `sub` must be that of the ID token.  PROVIDER_DOWN,
 * RESPONSE_JSON, USERINFO_SUB. */
BH_MUST_USE enum bh_identity_fault bh_userinfo_check(const struct bh_https_response *answer,
                                                     const char *subject);

#endif
