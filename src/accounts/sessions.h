#ifndef BH_ACCOUNTS_SESSIONS_H
#define BH_ACCOUNTS_SESSIONS_H

#include "accounts/accounts_internal.h"

/* The resources of sessions. */

/* The caller has just shown a factor of that level, or made it: appends what says so of his
 * session, where it is one and it has not shown more. */
BH_MUST_USE bh_rc bh_session_raise(struct bh_accounts *accounts, struct bh_call *call,
                                   enum bh_level level, struct bh_puts *puts,
                                   struct bh_err *err);

bh_rc bh_serve_sessions(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_session_end(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_sign_out(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_prove(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_break_glass(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

#endif
