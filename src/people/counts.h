#ifndef BH_PEOPLE_COUNTS_H
#define BH_PEOPLE_COUNTS_H

#include "people/people_internal.h"

/* Attempts to sign in (identity/lockout.h), kept in the store. */

struct bh_door {
    const char *account;             /* as typed */
    const char *source;              /* address, or the Unix user */
    const char *device;              /* one that signed in before, or NULL */
    uint32_t principal;              /* whose account; 0: nobody's */
};

/* A text to keep on a device that an account signs in from; NULL: no room. */
const char *bh_device_make(const struct bh_people *people, struct bh_arena *arena,
                           uint32_t principal);

/* Fill the source from the connection, in the call's arena. */
struct bh_door bh_door_of(const struct bh_people *people, struct bh_call *call,
                          const char *account, const char *device, uint32_t principal);

/* Count an attempt, durably, before anything is compared.  BH_UNAUTHENTICATED: not now; says
 * until when. */
BH_MUST_USE bh_rc bh_attempt_begin(struct bh_people *people, struct bh_call *call,
                                   const struct bh_door *door, struct bh_err *err);
/* It failed (counted before, or not: a passkey's signature cannot be guessed): record that, and the one answer for every way to fail. */
bh_rc bh_attempt_failed(struct bh_people *people, struct bh_call *call,
                        const struct bh_door *door, struct bh_err *err);
/* It succeeded: appends what is to be written with what it leads to. */
BH_MUST_USE bh_rc bh_attempt_succeeded(struct bh_people *people, struct bh_call *call,
                                       const struct bh_door *door, struct bh_puts *puts,
                                       struct bh_err *err);
/* Read the counts at the start. */
BH_MUST_USE bh_rc bh_counts_load(struct bh_people *people, struct bh_err *err);

#endif
