#ifndef BH_ACCOUNTS_OIDC_REFRESH_H
#define BH_ACCOUNTS_OIDC_REFRESH_H

#include "accounts/accounts_internal.h"

/* Ask providers again about users who signed in there, where they gave a refresh token: a user who lost a
 * group that gave a role, or who may no longer sign in, loses all sessions.  A provider that does not answer
 * is asked again later. */
void bh_oidc_refresh(struct bh_accounts *accounts, struct bh_call *call);

#endif
