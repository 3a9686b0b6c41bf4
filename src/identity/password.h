#ifndef BH_IDENTITY_PASSWORD_H
#define BH_IDENTITY_PASSWORD_H

#include <stdbool.h>
#include <stdint.h>

#include "identity/fault.h"

/* Passwords of local accounts, kept as Argon2id (RFC 9106) in the text form that names its
 * own cost and salt. */

enum {
    BH_PASSWORD_MAX = 1024, /* bytes of a password: hashing must stay bounded */
    BH_PASSWORD_SALT = 16,
    BH_PASSWORD_TEXT = 128 /* what is kept, with its NUL */
};

struct bh_password_cost {
    uint32_t memory_kib, passes, lanes;
};

/* 19 MiB, 2 passes, 1 lane: the least that OWASP's cheat sheet names, so that a small
 * machine stands several sign-ins at a time. */
extern const struct bh_password_cost bh_password_cost;

/* What to keep of a password.  PASSWORD_LENGTH, PASSWORD_MEMORY. */
BH_MUST_USE enum bh_identity_fault bh_password_hash(const char *password,
                                                    const uint8_t salt[BH_PASSWORD_SALT],
                                                    const struct bh_password_cost *cost,
                                                    char ret_stored[BH_PASSWORD_TEXT]);

/* Is it the password?  `kept` NULL means that there is no such account: as much is
 * computed as for a wrong password of `cost`, so that the time does not reveal which names
 * exist, and the answer is the same.
 *   PASSWORD_WRONG   also for an unknown account
 *   PASSWORD_LENGTH  empty or longer than BH_PASSWORD_MAX; nothing was computed
 *   PASSWORD_MEMORY  ask again later
 *   PASSWORD_STORED  `kept` is nothing that bh_password_hash made */
BH_MUST_USE enum bh_identity_fault bh_password_check(const char *stored, const char *password,
                                                     const struct bh_password_cost *cost);

/* Was it made with another cost?  Then hash the password anew when it was right. */
bool bh_password_is_stale(const char *stored, const struct bh_password_cost *cost);

#endif
