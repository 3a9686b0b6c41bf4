#ifndef BH_CLI_LOGIN_LOGIN_BROWSER_H
#define BH_CLI_LOGIN_LOGIN_BROWSER_H

#include "cli/login/session.h"

/* Sign in with a browser on this machine, which returns to a listener on 127.0.0.1
 * (cli/login/loopback.h).  `ways` is what /v1/sign-in said; free *ret_json, which holds the
 * session.  Failures of the requests, and
 *   BH_UNAVAILABLE  the server has no address for browsers
 *   BH_INVALID      its address is not fit for one
 *   BH_TIMEOUT      the browser did not return
 *   BH_DENIED       the person said no */
BH_MUST_USE bh_rc bh_login_browser(const struct bh_cli *cli, bh_json_value ways, struct bh_json **ret_json,
                                   struct bh_err *err);

/* The program of that name in PATH. */
BH_MUST_USE bool bh_login_find_program(const char *name, char *ret_path, size_t size);

#endif
