#ifndef BH_API_REQUEST_ACCOUNTS_PORT_H
#define BH_API_REQUEST_ACCOUNTS_PORT_H

#include <stdint.h>

#include "base/err.h"
#include "policy/operations.h"

/* Signing in, sessions and accounts, as the API asks for them.  src/accounts does it: it is
 * behind this port because it needs what the API must not (src/identity). */

struct bh_call;

struct bh_accounts_ops {
    /* Carry out an operation of accounts (bh_operation_of_accounts). */
    bh_rc (*serve)(void *self, struct bh_call *call, struct bh_err *err);
    /* The user of a session's secret, "bs_...": fills the call's caller.  BH_UNAUTHENTICATED: unknown, ended,
     * or bound to another connection. */
    bh_rc (*identify)(void *self, const char *secret, struct bh_call *call, struct bh_err *err);
    /* A token was used just now.  Does not wait. */
    void (*token_used)(void *self, const char *id, uint64_t now_ns);
};

struct bh_accounts_port {
    const struct bh_accounts_ops *ops; /* NULL: signing in is not set up */
    void *self;
};

#endif
