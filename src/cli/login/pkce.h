#ifndef BH_CLI_LOGIN_PKCE_H
#define BH_CLI_LOGIN_PKCE_H

#include <stdbool.h>

#include "base/err.h"

/* What proves that the browser's answer comes to the program that asked for it: a state
 * that comes back with it, and RFC 7636's verifier, whose SHA-256 alone the browser sees. */
enum { BH_PKCE_TEXT = 44 }; /* 32 bytes as base64url, and a NUL */

struct bh_pkce {
    char verifier[BH_PKCE_TEXT], challenge[BH_PKCE_TEXT], state[BH_PKCE_TEXT];
};

/* Random ones.  BH_UNAVAILABLE: no libcrypto, which is loaded only here; BH_IO. */
BH_MUST_USE bh_rc bh_pkce_make(struct bh_pkce *ret_pkce, struct bh_err *err);

/* The challenge of a verifier.  BH_UNAVAILABLE as above. */
BH_MUST_USE bh_rc bh_pkce_challenge(const char *verifier, char ret_challenge[BH_PKCE_TEXT],
                                    struct bh_err *err);

/* Are the texts equal?  Takes a time that depends on their lengths alone. */
bool bh_pkce_same(const char *a, const char *b);

#endif
