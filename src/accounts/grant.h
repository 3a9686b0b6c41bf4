#ifndef BH_ACCOUNTS_GRANT_H
#define BH_ACCOUNTS_GRANT_H

#include "accounts/accounts_internal.h"

/* The command line's sign-in through a browser: a signed-in user grants a code, which goes to the command
 * line's own listener, and the client that knows the challenge's verifier exchanges it for a session (RFC
 * 8252 and 7636, with Bulkhead as the provider). */

bh_rc bh_serve_grant(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_code(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

#endif
