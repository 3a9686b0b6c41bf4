#ifndef BH_WEB_ACCOUNT_PAGES_H
#define BH_WEB_ACCOUNT_PAGES_H

#include "base/time.h"
#include "web/frame.h"

/* The pages of a signed-in user: factors, tokens, sessions.  Pure, as
 * signin_pages.h.  Times are nanoseconds since the epoch, 0 for never. */

struct bh_passkey_view {
    const char *id, *name;
    bh_ns created, used;
    bool synced; /* lives on several devices */
};

struct bh_token_view {
    const char *id, *name;
    bh_ns created, used, expires;
};

struct bh_session_view {
    const char *id, *how; /* "password and passkey", "Example University" */
    const char *from;     /* address */
    bh_ns begun, last_used;
    bool present; /* the one that asks */
};

struct bh_account_view {
    struct bh_page_frame frame;
    const struct bh_passkey_view *passkeys;
    const struct bh_token_view *tokens;
    const struct bh_session_view *sessions;
    uint32_t passkey_count, token_count, session_count;
    uint32_t recovery_left;
    bool totp;
    bool local; /* has a password here */
};
void bh_account_page(struct bh_buf *out, struct bh_account_view *view);

/* Adding an authenticator app: the secret as a picture and as text, and a code to prove
 * that it arrived.  `address` is what identity/totp.h writes; it is in no address of this site.
 */
struct bh_totp_view {
    struct bh_page_frame frame;
    const char *address; /* otpauth://... */
    const char *secret;  /* base 32, to type in */
};
void bh_totp_page(struct bh_buf *out, struct bh_totp_view *view);

/* Recovery codes, shown once. */
struct bh_codes_view {
    struct bh_page_frame frame;
    const char *const *codes;
    uint32_t count;
};
void bh_codes_page(struct bh_buf *out, struct bh_codes_view *view);

#endif
