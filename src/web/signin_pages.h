#ifndef BH_WEB_SIGNIN_PAGES_H
#define BH_WEB_SIGNIN_PAGES_H

#include "web/frame.h"

/* The pages on the way in and out.  Pure: a struct says what to show, HTML comes out.
 * Titles are the pages' own: `frame.title` is set here. */

/* An identity provider of the site file. */
struct bh_signin_issuer {
    const char *id;   /* what the form posts */
    const char *name; /* "Example University" */
};

/* The way in: a passkey alone, providers, and accounts of this site with password and code.
 */
struct bh_signin_view {
    struct bh_page_frame frame;
    const struct bh_signin_issuer *issuers;
    uint32_t issuer_count;
    bool passkey;
    bool local;          /* ask for account and password */
    const char *account; /* as it was typed before; "" */
    const char *next;    /* path to go to afterwards; "" */
};
void bh_signin_page(struct bh_buf *out, struct bh_signin_view *view);

/* A signed-in user must show a factor again, one of those that the account has. */
struct bh_step_up_view {
    struct bh_page_frame frame;
    bool passkey, code;
    const char *issuer; /* the session's issuer; "" */
    const char *next;   /* "" */
};
void bh_step_up_page(struct bh_buf *out, struct bh_step_up_view *view);

/* A command line wants a session: `bulkhead login` has sent its user here. */
struct bh_command_line_view {
    struct bh_page_frame frame;
    const char *challenge; /* its first letters are shown in the terminal, too */
    const char *state, *port;
    const char *host; /* where it runs, as it says */
};
void bh_command_line_page(struct bh_buf *out, struct bh_command_line_view *view);

/* A first visit with a one-time code, or a new password: what is asked for depends on how
 * the person got here. */
struct bh_enroll_view {
    struct bh_page_frame frame;
    const char *account; /* filled in; "" */
    bool code;           /* ask for account and one-time code */
    bool old;            /* ask for the present password */
};
void bh_enroll_page(struct bh_buf *out, struct bh_enroll_view *view);

/* Something went wrong; says only what the status says. */
struct bh_error_view {
    struct bh_page_frame frame;
    uint32_t status;
};
void bh_error_page(struct bh_buf *out, struct bh_error_view *view);

/* Signed out; `provider` is where to sign out of the identity provider, too, or "". */
struct bh_signed_out_view {
    struct bh_page_frame frame;
    const char *provider;
};
void bh_signed_out_page(struct bh_buf *out, struct bh_signed_out_view *view);

#endif
