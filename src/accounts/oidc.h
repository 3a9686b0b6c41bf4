#ifndef BH_ACCOUNTS_OIDC_H
#define BH_ACCOUNTS_OIDC_H

#include "identity/id_token.h"
#include "identity/login.h"
#include "accounts/accounts_internal.h"

/* Signing in at an OpenID provider: with a browser (SIGN_IN_ISSUER, SIGN_IN_RETURN) or from a
 * machine without one (SIGN_IN_DEVICE, SIGN_IN_POLL); and the provider's word that a user
 * signed out (SIGN_IN_LOGOUT). */

/* What came of a sign-in at a provider, still to be written. */
struct bh_oidc_sign_in {
    struct bh_issuer_view *issuer;
    struct bh_tokens tokens;  /* as the provider gave them */
    struct bh_id_token token; /* what the ID token says, once it was checked */
    const char *host;
    enum bh_session_kind kind;
};

/* What the provider's tokens must fulfil in this flow. */
struct bh_token_rules {
    const char *nonce, *code; /* NULL: the flow has none */
    const char *subject;      /* of the session that is refreshed or shown again */
    bool fresh;               /* a sign-in of the last minutes was asked for */
};

/* Verify the arrival's tokens, asking for the provider's keys where need be, and fill its
 * `token`; texts in the call's arena. */
BH_MUST_USE bh_rc bh_oidc_sign_in_check(struct bh_accounts *accounts, struct bh_call *call,
                                        const struct bh_token_rules *rules, struct bh_oidc_sign_in *sign_in,
                                        struct bh_err *err);

/* The groups of the token that bindings name, as "corp/GROUP".  BH_FULL. */
BH_MUST_USE bh_rc bh_oidc_sign_in_groups(struct bh_call *call, const struct bh_oidc_sign_in *sign_in,
                                         struct bh_texts *ret_groups, struct bh_err *err);

/* Open a session for the identity, and write the reply. */
BH_MUST_USE bh_rc bh_oidc_sign_in_complete(struct bh_accounts *accounts, struct bh_call *call,
                                           const struct bh_oidc_sign_in *sign_in, struct bh_err *err);

bh_rc bh_serve_issuer(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_return(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_device(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_poll(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_logout(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

#endif
