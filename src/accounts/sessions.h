#ifndef BH_ACCOUNTS_SESSIONS_H
#define BH_ACCOUNTS_SESSIONS_H

#include "accounts/accounts_internal.h"

/* The resources of sessions. */

bh_rc bh_serve_sessions(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_session_end(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_sign_out(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_prove(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_break_glass(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

#endif
