#ifndef BH_LIB_MOCK_PROVIDER_H
#define BH_LIB_MOCK_PROVIDER_H

#include "base/buf.h"
#include "base/time.h"
#include "identity/fixture_test.h"
#include "ports/https.h"

/* An OpenID provider in memory, which lies where a test sets it to.  It answers the requests of
 * src/identity's state machines; the keys are src/identity/fixture_test.h's.  One client, "bulkhead"; one
 * person, "me". */

enum bh_mock_wrong {
    BH_MOCK_HONEST,
    BH_MOCK_DISCOVERY_ISSUER, /* its configuration names another issuer */
    BH_MOCK_CALLBACK_ISSUER,  /* its answer to the browser does */
    BH_MOCK_CALLBACK_STATE,   /* another state comes back */
    BH_MOCK_CALLBACK_ERROR,   /* the person refuses */
    BH_MOCK_ISS,              /* of the ID token, and so on */
    BH_MOCK_SUB_MISSING,
    BH_MOCK_AUD,
    BH_MOCK_AUD_MISSING,
    BH_MOCK_IAT_MISSING,
    BH_MOCK_NONCE,
    BH_MOCK_AT_HASH,
    BH_MOCK_ALG_NONE,
    BH_MOCK_ALG_HS256,           /* the RSA public key as the secret */
    BH_MOCK_SIGNATURE,           /* by another key */
    BH_MOCK_KID_ABSENT_SINGLE,   /* no kid, one key in the set: no lie */
    BH_MOCK_KID_ABSENT_MULTIPLE, /* no kid, two keys that fit */
    BH_MOCK_KEY_NEVER_SHOWN,     /* a kid that the key set never has */
    BH_MOCK_REFRESH_ISS,         /* honest until the refresh */
    BH_MOCK_REFRESH_SUB,
    BH_MOCK_WRONGS
};

struct bh_mock {
    enum bh_mock_wrong wrong;
    bh_ns now;
    bool down;    /* answers 503 to everything */
    bool rotated; /* signs with, and shows, the key "rsa-other" alone */
    unsigned jwks_asked, refreshes;
    bool code_used, revoked;
    const char *groups, *amr, *subject; /* JSON lists, and a name; NULL: ["ml"], none, "me" */
    char nonce[64], state[64], challenge[64];
    char body[16384]; /* of the last answer */
};

#define BH_MOCK_ISSUER "https://op.example"

/* The browser goes to `url`; what the provider sends back is appended as a query. */
void bh_mock_browse(struct bh_mock *mock, const char *url, struct bh_buf *query);

/* Answer a request: discovery, keys, tokens.  The answer lives until the next. */
void bh_mock_answer(struct bh_mock *mock, const struct bh_https_request *request,
                    struct bh_https_response *ret_answer);

#endif
