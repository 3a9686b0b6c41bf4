#include "identity/assertion.h"

#include "base/json.h"
#include "base/test.h"
#include "identity/fixture_test.h"
#include "identity/jws.h"

#define NOW (UINT64_C(1790000000) * BH_NS_PER_S)

static const uint8_t zeros[BH_SECRET_BYTES];
static const struct bh_assertion_request request = {
    .client = "bulk\"head", .audience = "https://op.example/token", .random = zeros, .now = NOW
};

static struct bh_assertion_key *
open_key(enum bh_test_key key, const char *kid)
{
    const char *pem = bh_test_pem(key);
    struct bh_assertion_key *opened = NULL;
    struct bh_err err;

    assert_int_equal(bh_assertion_key_open(pem, strlen(pem), kid, &opened, &err), BH_OK);
    return opened;
}

static void
check_claims(const char *name, const struct bh_buf *payload)
{
    struct bh_json *json = NULL;
    bh_json_value claims;
    struct bh_err err;

    assert_int_equal(bh_json_parse(payload->bytes, payload->length, &json, &err), BH_OK);
    claims = bh_json_root(json);
    BH_CHECK_STR(name, bh_json_text(bh_json_get(claims, "iss"), ""), "bulk\"head");
    BH_CHECK_STR(name, bh_json_text(bh_json_get(claims, "sub"), ""), "bulk\"head");
    BH_CHECK_STR(name, bh_json_text(bh_json_get(claims, "aud"), ""), request.audience);
    BH_CHECK_STR(name, bh_json_text(bh_json_get(claims, "jti"), ""),
                 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    BH_CHECK_EQ(name, bh_json_integer(bh_json_get(claims, "iat"), 0), 1790000000);
    BH_CHECK_EQ(name, bh_json_integer(bh_json_get(claims, "exp"), 0), 1790000060);
    bh_json_free(json);
}

/* What is signed here, what verifies signatures takes. */
static void
verified(void **state)
{
    static const struct {
        const char *name, *kid;
        enum bh_test_key key;
        enum bh_jws_alg alg;
    } rows[] = {
        { "RSA", "rsa", BH_TEST_RSA, BH_JWS_RS256 },
        { "P-256", "p256", BH_TEST_P256, BH_JWS_ES256 },
        { "no id", NULL, BH_TEST_P256, BH_JWS_ES256 },
    };
    const struct bh_jws_trust trust = { bh_test_jwks(), BH_JWS_ALL };
    struct bh_arena *arena = bh_arena_new(1 << 16);

    /* r and s are padded: some signatures begin with zeros */
    for (size_t i = 0; i < 300 + BH_COUNT(rows); i++) {
        size_t at = i < BH_COUNT(rows) ? i : 1;
        struct bh_assertion_key *key = open_key(rows[at].key, rows[at].kid);
        const char *text = "";
        struct bh_jws jws = { .kid = "" };
        struct bh_buf payload;
        struct bh_err err;

        bh_arena_reset(arena);
        bh_buf_init(&payload, BH_JWS_BYTES_MAX);
        BH_CHECK_EQ(rows[at].name, bh_assertion_make(key, &request, arena, &text, &err), BH_OK);
        BH_CHECK_EQ(rows[at].name, bh_jws_read(text, strlen(text), &trust, &jws, &payload), 0);
        BH_CHECK_EQ(rows[at].name, jws.alg, rows[at].alg);
        BH_CHECK_STR(rows[at].name, jws.kid, rows[at].kid ? rows[at].kid : "");
        BH_CHECK_STR(rows[at].name, jws.type, "JWT");
        check_claims(rows[at].name, &payload);
        bh_buf_fini(&payload);
        bh_assertion_key_free(key);
    }
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static void
keys_refused(void **state)
{
    static const char encrypted[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGbMFcGCSqGSIb3\n"
                                    "-----END ENCRYPTED PRIVATE KEY-----\n";
    const struct {
        const char *name, *pem;
    } texts[] = { { "empty", "" }, { "no PEM", "secret" }, { "encrypted", encrypted } };
    static const enum bh_test_key others[] = { BH_TEST_RSA_SHORT, BH_TEST_P384, BH_TEST_ED25519 };
    struct bh_assertion_key *key = NULL;
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(texts); i++)
        BH_CHECK_EQ(texts[i].name,
                    bh_assertion_key_open(texts[i].pem, strlen(texts[i].pem), NULL, &key, &err), BH_INVALID);
    for (size_t i = 0; i < BH_COUNT(others); i++) {
        const char *pem = bh_test_pem(others[i]);

        BH_CHECK_EQ("another type", bh_assertion_key_open(pem, strlen(pem), NULL, &key, &err), BH_INVALID);
    }
    BH_CHECK("untouched", !key);
    BH_CHECK_DONE();
}

static void
no_space(void **state)
{
    struct bh_assertion_key *key = open_key(BH_TEST_P256, "p256");
    struct bh_arena *small = bh_arena_new(64), *arena = bh_arena_new(1 << 16);
    struct bh_assertion_request long_request = request;
    const char *text = NULL;
    static char client[8000];
    struct bh_err err;

    BH_CHECK_EQ("arena", bh_assertion_make(key, &request, small, &text, &err), BH_FULL);
    memset(client, 'c', sizeof client - 1);
    long_request.client = client;
    BH_CHECK_EQ("text", bh_assertion_make(key, &long_request, arena, &text, &err), BH_FULL);
    BH_CHECK("untouched", !text);
    bh_assertion_key_free(key);
    bh_arena_free(small);
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(verified),
    cmocka_unit_test(keys_refused),
    cmocka_unit_test(no_space),
};

int
main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, bh_test_keys_init, bh_test_keys_fini);
}
