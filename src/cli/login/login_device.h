#ifndef BH_CLI_LOGIN_LOGIN_DEVICE_H
#define BH_CLI_LOGIN_LOGIN_DEVICE_H

#include "cli/login/session.h"

/* Sign in by a code that is typed into a browser elsewhere (RFC 8628).  `ways` is what
 * /v1/sign-in said; free *ret_json, which holds the session.  Failures of the requests, and
 *   BH_UNAVAILABLE  no issuer offers it
 *   BH_NOT_FOUND    not that of --issuer
 *   BH_INVALID      several do, and none was named
 *   BH_TIMEOUT      the sign-in was not confirmed in time */
BH_MUST_USE bh_rc bh_login_device(const struct bh_cli *cli, bh_json_value ways, struct bh_json **ret_json,
                                  struct bh_err *err);

#endif
