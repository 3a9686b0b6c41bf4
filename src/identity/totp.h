#ifndef BH_IDENTITY_TOTP_H
#define BH_IDENTITY_TOTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/time.h"
#include "identity/fault.h"

/* Time-based one-time codes (RFC 6238) and recovery codes.  Pure: the caller keeps the
 * secret sealed, and the last step accepted durably before a session opens. */

enum bh_totp_hash { BH_TOTP_SHA1, BH_TOTP_SHA256, BH_TOTP_SHA512 };

enum {
    BH_TOTP_SECRET_MAX = 64,
    BH_TOTP_SECRET_BYTES = 20, /* what new secrets have: 160 bits */
    BH_TOTP_WINDOW_MAX = 2
};

struct bh_totp {
    enum bh_totp_hash hash;
    uint32_t digits;   /* 6 to 8 */
    uint32_t period_s; /* 30 */
    uint32_t window;   /* steps to either side that are accepted: 1 */
    uint8_t secret[BH_TOTP_SECRET_MAX];
    uint32_t secret_bytes;
};

/* The code of the step that `at` lies in. */
void bh_totp_code(const struct bh_totp *totp, bh_ns at, char ret_code[9]);

/* Is `code` the code of now or of a step within the window, and newer than *last_step, the
 * step accepted before (0: none)?  On success *last_step is the step accepted; it must be
 * durable before the person is let in, or the code is good twice.
 *   TOTP_FORM    not the right number of digits
 *   TOTP_REUSED  right, but for a step that was used or is older than one that was
 *   TOTP_WRONG   no code of the window
 * All of the window is compared, in constant time. */
BH_MUST_USE enum bh_identity_fault bh_totp_check(const struct bh_totp *totp, const char *code, bh_ns now,
                                                 uint64_t *last_step);

/* The secret in base 32, for typing it into an app. */
void bh_totp_put_secret(struct bh_buf *out, const struct bh_totp *totp);

/* The address that authenticator apps read from a picture; shown once.  `account` and
 * `site` are texts to show. */
void bh_totp_put_address(struct bh_buf *out, const struct bh_totp *totp, const char *site,
                         const char *account);

/* Recovery codes: 80 random bits each, shown once as four groups of four letters and digits (Crockford's: no
 * I, L, O, U), kept as a salted SHA-256 each: 2^80 codes cannot be tried, so a slow hash would protect
 * nothing. */
enum {
    BH_RECOVERY_CODES = 10,
    BH_RECOVERY_RANDOM = 10,
    BH_RECOVERY_TEXT = 20, /* "ABCD-EFGH-JKMN-PQRS" and a NUL */
    BH_RECOVERY_HASH = 44
};

struct bh_recovery {
    char hashes[BH_RECOVERY_CODES][BH_RECOVERY_HASH]; /* "": used */
};

/* Make a set from random bytes.  The texts are for the person alone.  The salt, of the
 * account, makes equal codes of two accounts different. */
void bh_recovery_make(const uint8_t random[BH_RECOVERY_CODES][BH_RECOVERY_RANDOM], const char *salt,
                      struct bh_recovery *ret_set, char ret_codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT]);

/* Use a code: true once.  Case, blanks and dashes do not matter, and O, I and L count as
 * 0, 1 and 1.  All hashes are compared, in constant time. */
BH_MUST_USE bool bh_recovery_use(struct bh_recovery *set, const char *salt, const char *code);

/* How many are left. */
uint32_t bh_recovery_left(const struct bh_recovery *set);

#endif
