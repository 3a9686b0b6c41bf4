#ifndef BH_ACCOUNTS_PASSKEYS_H
#define BH_ACCOUNTS_PASSKEYS_H

#include "identity/webauthn.h"
#include "accounts/attempt.h"

/* Passkeys: as documents of the store, by their credential's id, and the ceremonies.
 *
 * Registering needs a recently shown factor.  A passkey that verified its user is two factors by itself, so
 * it signs a local account in alone, without its name; a user of a provider uses a passkey to show a factor
 * again, but signs in only through the provider, or leaving it would not end the access.
 *
 * Attempts with passkeys are counted on where they come from and not on the account: a signature cannot be
 * guessed, and an attacker who saw a credential's id must not lock the owner out. */

/* What a passkey has shown, and what must be written with what it leads to. */
struct bh_passkey_proof {
    uint32_t principal;
    struct bh_document_put put;
};

/* Whether the request holds a good answer to a challenge of this server, by a passkey that is kept
 * here.  The challenge is then used up.  False also when it may have been copied: then it is
 * logged. */
bool bh_passkey_right(struct bh_accounts *accounts, struct bh_call *call,
                      const struct bh_sign_in_request *request, struct bh_passkey_proof *ret_shown);

/* Whether browsers can have passkeys here: the site's address names a host, not a number. */
bool bh_passkeys_offered(const struct bh_call *call);

/* What attempts with passkeys are counted on. */
struct bh_sign_in_attempt bh_passkey_attempt(const struct bh_accounts *accounts, struct bh_call *call);

/* The passkeys of a principal, in the call's arena: struct bh_reply_passkey_shown.  Failures of the
 * store. */
BH_MUST_USE bh_rc bh_passkeys_list(const struct bh_accounts *accounts, struct bh_call *call,
                                   uint32_t principal, struct bh_list *ret, struct bh_err *err);

/* Sign in with what a request shows of a passkey. */
BH_MUST_USE bh_rc bh_passkey_sign_in(struct bh_accounts *accounts, struct bh_call *call,
                                     const struct bh_sign_in_request *request, struct bh_err *err);

/* ---- resources: one operation each ---- */

bh_rc bh_serve_challenge(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_passkey_begin(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_passkey_add(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_passkey_remove(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

#endif
