#ifndef BH_ACCOUNTS_FIRST_ADMIN_H
#define BH_ACCOUNTS_FIRST_ADMIN_H

#include "accounts/accounts_internal.h"

/* The first admin. */

/* Offer a code while no user can sign in as an admin. */
BH_MUST_USE bh_rc bh_first_admin_offer(struct bh_accounts *accounts, struct bh_err *err);

bh_rc bh_serve_first_admin(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

#endif
