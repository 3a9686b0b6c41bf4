#ifndef BH_IDENTITY_LOCKOUT_H
#define BH_IDENTITY_LOCKOUT_H

#include <stdbool.h>

#include "base/time.h"
#include "identity/fault.h"

/* How often sign-in may be tried.  One value serves passwords, codes and recovery codes on all paths; it is
 * plain bytes that the caller keeps across restarts.
 *
 * Attempts are counted on the account and on where they come from.  Five on an account within 5 minutes lock
 * it for 15 minutes, 20 from an address block lock that; twice as long with each further lock of that day, 4
 * hours at most.  Nothing locks all accounts: an attacker who guesses from many places waits for each of
 * them, and does not stop sign-ins at another account or place.
 *
 * An attacker must not lock a user out: an attempt from a device that this account signed in from before
 * (its cookie was verified) is counted on account and device alone, and locks from other devices do not
 * delay it. */

enum {
    BH_LOCKOUT_ACCOUNTS_MAX = 2048,
    BH_LOCKOUT_SOURCES_MAX = 2048,
    BH_LOCKOUT_WINDOW_S = 300,
    BH_LOCKOUT_S = 900,
    BH_LOCKOUT_MAX_S = 14400,
    BH_LOCKOUT_DAY_ALERT = 20 /* failed attempts a day on an account: log it */
};

/* Zeroed is new. */
struct bh_lockout_count {
    uint8_t key[16];              /* zeros: free */
    bh_ns since, until;           /* begin of the window; locked until */
    bh_ns day;                    /* begin of its day */
    uint32_t attempts;            /* in the window */
    uint32_t locks, day_attempts; /* of the day */
};

struct bh_lockout {
    struct bh_lockout_count accounts[BH_LOCKOUT_ACCOUNTS_MAX];
    struct bh_lockout_count sources[BH_LOCKOUT_SOURCES_MAX];
};

struct bh_attempt {
    const char *account; /* as it was typed */
    const char *source;  /* an address; of IPv6 the block of 64 bits */
    const char *device;  /* id of a known device; NULL: unknown */
};

/* May this attempt be made?  If so it is counted as failed at once, so that attempts made
 * at the same time cannot slip through; bh_lockout_succeed takes it back.  Keep the value
 * before the password or code is looked at.  *ret_alert: the account has just reached
 * BH_LOCKOUT_DAY_ALERT.  Where no place is free, the count that matters least makes room: one
 * that locks nothing and has the fewest locks and attempts of its day.
 *   LOCKED_ACCOUNT, LOCKED_SOURCE  not before *ret_until; nothing was counted
 */
BH_MUST_USE enum bh_identity_fault bh_lockout_begin(struct bh_lockout *lockout,
                                                    const struct bh_attempt *attempt, bh_ns now,
                                                    bh_ns *ret_until, bool *ret_alert);

/* The attempt succeeded with all its factors.  Do not call it after the password alone: an attacker with the
 * password could then guess codes for ever.  The account's count starts again; that of the source loses this
 * one attempt. */
void bh_lockout_succeed(struct bh_lockout *lockout, const struct bh_attempt *attempt);

#endif
