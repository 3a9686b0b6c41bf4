#ifndef BH_IDENTITY_LOGOUT_H
#define BH_IDENTITY_LOGOUT_H

#include "identity/claims.h"
#include "identity/jws.h"
#include "identity/provider.h"
#include "identity/secret.h"

/* Ending sessions: Bulkhead sends the browser to the provider (RP-initiated logout), and the provider reports
 * (back-channel logout). */

/* The address to send the browser to.  `state` is random and comes back.  BH_UNAVAILABLE:
 * the provider has no such page; BH_FULL: `url` has no room. */
struct bh_logout_request {
    const char *id_token_hint; /* NULL: none */
    const char *back;          /* post_logout_redirect_uri; NULL: none */
    const char *state;
};
BH_MUST_USE bh_rc bh_logout_url(const struct bh_provider *provider, const struct bh_relying_party *client,
                                const struct bh_logout_request *request, struct bh_buf *url);

/* The browser came back.  FORM*, STATE_MISSING, STATE_WRONG. */
BH_MUST_USE enum bh_identity_fault bh_logout_callback(const char *state, const char *query);

/* Logout tokens used lately: a token is good once.  Zeroed is empty. */
enum { BH_LOGOUT_REPLAY_MAX = 1024 };
struct bh_logout_replay {
    struct {
        char id[BH_SECRET_TEXT]; /* SHA-256 of issuer and jti */
        bh_ns until;
    } tokens[BH_LOGOUT_REPLAY_MAX];
};

/* Whose sessions end. */
struct bh_logout {
    char subject[BH_CLAIM_TEXT_MAX + 1]; /* "": not said */
    char session[BH_CLAIM_TEXT_MAX + 1]; /* sid; "": all of the subject */
};

/* Verify a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6) and remember
 * it.  Faults: those of bh_jws_read, HEADER_TYPE, PAYLOAD_JSON, of the claims iss, aud,
 * exp, iat, sub and sid; LOGOUT_*.  With a table full of tokens that still live the token
 * is refused as LOGOUT_REPLAYED: nothing may be forgotten early. */
struct bh_logout_rules {
    const char *issuer, *client;
    struct bh_claims_when when;
};
BH_MUST_USE enum bh_identity_fault bh_logout_read(const char *text, const struct bh_jws_trust *trust,
                                                  const struct bh_logout_rules *rules,
                                                  struct bh_logout_replay *replay,
                                                  struct bh_logout *ret_logout);

#endif
