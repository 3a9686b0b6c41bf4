#ifndef BH_CLI_LOGIN_LOOPBACK_H
#define BH_CLI_LOGIN_LOOPBACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

/* The command line's listener for a browser that has signed in, on 127.0.0.1, where
 * the server's page sends it with ?code=...&state=... (RFC 8252, section 7.3).  Any program
 * of this machine may connect; only a request with the state counts, and its code is worth
 * nothing without the verifier (cli/login/pkce.h). */

enum { BH_LOOPBACK_CODE_MAX = 129, BH_LOOPBACK_REQUEST_MAX = 8 << 10 };

struct bh_loopback {
    int fd; /* -1: closed */
    uint16_t port;
    const char *state; /* borrowed */
    bh_ns wait_ns;     /* how long to wait in all; default 5 minutes */
    bh_ns client_ns;   /* how long one visitor may take; default 5 seconds */
};

/* What a visitor wants, which decides the answer. */
enum bh_loopback_outcome {
    BH_LOOPBACK_DONE, /* it brings the code */
    BH_LOOPBACK_NO,   /* the user refused */
    BH_LOOPBACK_STATE,
    BH_LOOPBACK_QUERY,
    BH_LOOPBACK_PATH,
    BH_LOOPBACK_METHOD,
    BH_LOOPBACK_HOST,
    BH_LOOPBACK_LARGE,
    BH_LOOPBACK_SLOW,
    BH_LOOPBACK_OUTCOMES
};

/* Judge the head of a request, a text of whole lines, which is changed; the code of
 * BH_LOOPBACK_DONE. */
enum bh_loopback_outcome bh_loopback_judge(const struct bh_loopback *loopback, char *text,
                                           char ret_code[BH_LOOPBACK_CODE_MAX]);

/* Listen on a free port.  BH_IO. */
BH_MUST_USE bh_rc bh_loopback_open(const char *state, struct bh_loopback *ret_loopback, struct bh_err *err);
void bh_loopback_close(struct bh_loopback *loopback);

/* Wait for the browser, answering one visitor after the other; what is anything else than
 * its one request is refused, and the waiting continues.
 *   BH_TIMEOUT  no visitor came
 *   BH_DENIED   the user refused in the browser
 *   BH_IO */
BH_MUST_USE bh_rc bh_loopback_wait(const struct bh_loopback *loopback, char ret_code[BH_LOOPBACK_CODE_MAX],
                                   struct bh_err *err);

#endif
