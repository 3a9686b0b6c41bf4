#ifndef BH_ACCOUNTS_ATTEMPT_H
#define BH_ACCOUNTS_ATTEMPT_H

#include "accounts/accounts_internal.h"

/* Attempts to sign in (identity/lockout.h), kept in the store. */

struct bh_sign_in_attempt {
    const char *account; /* as typed */
    const char *source;  /* address, or the Unix user */
    const char *device;  /* one that signed in before, or NULL */
    uint32_t principal;  /* whose account; 0: none */
};

/* A text to keep on a device that an account signs in from; NULL: no room. */
const char *bh_device_make(const struct bh_accounts *accounts, struct bh_arena *arena, uint32_t principal);

/* Fill the source from the connection, in the call's arena. */
struct bh_sign_in_attempt bh_attempt_from_call(const struct bh_accounts *accounts, struct bh_call *call,
                                               const char *account, const char *device, uint32_t principal);

/* Count an attempt, durably, before anything is compared.  BH_UNAUTHENTICATED: not now; says
 * until when. */
BH_MUST_USE bh_rc bh_attempt_begin(struct bh_accounts *accounts, struct bh_call *call,
                                   const struct bh_sign_in_attempt *attempt, struct bh_err *err);
/* It failed (counted before, or not: a passkey's signature cannot be guessed): record that, and the one
 * answer for every way to fail. */
bh_rc bh_attempt_failed(struct bh_accounts *accounts, struct bh_call *call,
                        const struct bh_sign_in_attempt *attempt, struct bh_err *err);
/* It succeeded: appends what is to be written with what it leads to. */
BH_MUST_USE bh_rc bh_attempt_succeeded(struct bh_accounts *accounts, struct bh_call *call,
                                       const struct bh_sign_in_attempt *attempt, struct bh_puts *puts,
                                       struct bh_err *err);
/* Read the counts at the start. */
BH_MUST_USE bh_rc bh_attempts_load(struct bh_accounts *accounts, struct bh_err *err);

#endif
