#ifndef BH_ACCOUNTS_OIDC_REFRESH_H
#define BH_ACCOUNTS_OIDC_REFRESH_H

#include "accounts/accounts_internal.h"

/* Ask providers again about those who signed in there, where they gave a refresh token: who was
 * taken out of a group that gave a role, or may not sign in any more, loses all
 * sessions.  A provider that does not answer is asked again later. */
void bh_oidc_refresh(struct bh_accounts *accounts, struct bh_call *call);

#endif
