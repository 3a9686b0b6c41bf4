#ifndef BH_ACCOUNTS_CHALLENGE_H
#define BH_ACCOUNTS_CHALLENGE_H

#include "identity/webauthn.h"
#include "accounts/accounts_internal.h"

/* Challenges that passkeys sign, to sign a user in or to confirm who the user is.
 *
 * A challenge is made from its id under a key that lives as long as the process, and is not stored: however
 * many unknown callers ask for, no other is lost, and a restart ends them all.  The table has only the
 * challenges that were answered well, so that none is used twice. */

struct bh_challenge {
    char id[33]; /* the second it was made in and a random text, in hex */
    struct bh_webauthn ceremony;
};

/* The key of this process. */
BH_MUST_USE bh_rc bh_challenges_open(struct bh_accounts *accounts, struct bh_err *err);

/* Ask something new. */
BH_MUST_USE bh_rc bh_challenge_make(const struct bh_accounts *accounts, struct bh_challenge *ret_challenge,
                                    struct bh_err *err);

/* The challenge of that id, as it was asked; its ceremony is used when it was answered.  False:
 * no id at all.  One that was never given out cannot have been signed. */
bool bh_challenge_find(struct bh_accounts *accounts, const char *id, struct bh_challenge *ret_challenge);

/* It was answered well: true once, and false while too many others were. */
bool bh_challenge_consume(struct bh_accounts *accounts, const struct bh_challenge *challenge);

#endif
