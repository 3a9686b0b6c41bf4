#ifndef BH_DAEMON_ACCOUNTS_STEPS_TEST_H
#define BH_DAEMON_ACCOUNTS_STEPS_TEST_H

/* What people do at first, in tests about what they do then. */

#include "daemon/accounts_fixture_test.h"
#include "identity/totp.h"

/* The code that an app shows now for a secret in base 32. */
static inline const char *
code_of(struct site *at, const char *secret, bh_ns when)
{
    struct bh_totp totp = { BH_TOTP_SHA1, 6, 30, 1, { 0 }, 20 };
    uint32_t bits = 0, count = 0, at_byte = 0;
    char code[9];

    for (; *secret; secret++) {
        bits = bits << 5 | (uint32_t)(*secret >= 'A' ? *secret - 'A' : *secret - '2' + 26);
        count += 5;
        if (count >= 8) {
            count -= 8;
            totp.secret[at_byte++] = (uint8_t)(bits >> count);
        }
    }
    bh_totp_code(&totp, when, code);
    return bh_arena_strdup(at->f.arena, code);
}

#define PASSWORD "correct horse battery"

/* An admin on the machine makes a one-time code, and its owner a password. */
static inline void
accounts_steps_enrol(struct site *at, const char *name)
{
    SEND(at, BH_POST, "/v1/accounts", .uid = 2003, .body = body_of(at, "{\"principal\":\"%s\"}", name));
    assert_int_equal(at->status, 200);
    SEND(at, BH_PUT, "/v1/account/password",
         .body = body_of(at, "{\"account\":\"%s\",\"enrol\":\"%s\",\"password\":\"" PASSWORD "\"}",
                         name, accounts_fixture_text_of(at, "code")));
    assert_int_equal(at->status, 200);
}

/* Sign in; the session's secret, or "" . */
static inline const char *
accounts_steps_sign_in(struct site *at, const char *name, const char *password, const char *code)
{
    SEND(at, BH_POST, "/v1/sign-in",
         .body = body_of(at, "{\"account\":\"%s\",\"code\":\"%s\",\"password\":\"%s\"}", name,
                         code ? code : "", password));
    return at->status == 201 ? accounts_fixture_text_of(at, "session") : "";
}

/* The same with an authenticator app set up: its secret. */
static inline const char *
enrol_with_app(struct site *at, const char *name)
{
    const char *session, *secret;

    accounts_steps_enrol(at, name);
    session = accounts_steps_sign_in(at, name, PASSWORD, NULL);
    SEND(at, BH_POST, "/v1/account/totp", .bearer = session);
    assert_int_equal(at->status, 200);
    secret = accounts_fixture_text_of(at, "secret");
    SEND(at, BH_PUT, "/v1/account/totp", .bearer = session,
         .body = body_of(at, "{\"code\":\"%s\"}", code_of(at, secret, clock_ns)));
    assert_int_equal(at->status, 200);
    clock_ns += 30 * BH_NS_PER_S; /* the code is used up */
    return secret;
}

#endif
