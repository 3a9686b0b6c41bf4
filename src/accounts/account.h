#ifndef BH_ACCOUNTS_ACCOUNT_H
#define BH_ACCOUNTS_ACCOUNT_H

#include "accounts/accounts_internal.h"

/* The resources of accounts. */

bh_rc bh_serve_ways(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_sign_in(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_account(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_password(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_accounts(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_enroll(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_reset(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

#endif
