#include "identity/logout.h"

#include "base/test.h"
#include "identity/fixture_test.h"

#define NOW_S UINT64_C(1790000000)
#define ISS "\"iss\":\"https://op.example\""
#define AUD ",\"aud\":\"bulkhead\""
#define TIMES ",\"exp\":1790000120,\"iat\":1790000000"
#define EVENTS ",\"events\":{\"http://schemas.openid.net/event/backchannel-logout\":{}}"
#define WHO ",\"sub\":\"me\",\"sid\":\"s1\""
#define JTI ",\"jti\":\"j1\""
#define GOOD ISS AUD TIMES EVENTS WHO JTI
#define HEADER "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"typ\":\"logout+jwt\"}"

static struct bh_logout_replay replay;

static enum bh_identity_fault
logout_test_read_token(const char *token, bh_ns now, struct bh_logout *ret)
{
    struct bh_jws_trust trust = { bh_test_jwks(), BH_JWS_ALL & ~BH_JWS_BIT(BH_JWS_ES256) };
    struct bh_logout_rules rules = { "https://op.example", "bulkhead", { now, 60, 600 } };

    return bh_logout_read(token, &trust, &rules, &replay, ret);
}

/* Names are modules of the conformance suite's back-channel logout plan. */
static void
logout_test_tokens(void **state)
{
    static const struct {
        const char *name, *header, *claims;
        enum bh_identity_fault fault;
    } rows[] = {
        { "backchannel ok", HEADER, GOOD, 0 },
        { "typ absent", "{\"alg\":\"RS256\",\"kid\":\"rsa\"}", GOOD, 0 },
        { "typ of an access token", "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"typ\":\"at+jwt\"}", GOOD,
          BH_FAULT_HEADER_TYPE },
        { "alg-none", "{\"alg\":\"none\"}", GOOD, BH_FAULT_ALG_NONE },
        { "wrong-alg", "{\"alg\":\"ES256\",\"kid\":\"rsa\"}", GOOD, BH_FAULT_ALG_REFUSED },
        { "no-event", HEADER, ISS AUD TIMES WHO JTI, BH_FAULT_LOGOUT_EVENTS },
        { "wrong-event", HEADER, ISS AUD TIMES WHO JTI ",\"events\":{\"http://other\":{}}",
          BH_FAULT_LOGOUT_EVENTS },
        { "event no object", HEADER,
          ISS AUD TIMES WHO JTI ",\"events\":{\"http://schemas.openid.net/event/backchannel-logout\":true}",
          BH_FAULT_LOGOUT_EVENTS },
        { "events a list", HEADER, ISS AUD TIMES WHO JTI ",\"events\":[]", BH_FAULT_LOGOUT_EVENTS },
        { "with-nonce", HEADER, GOOD ",\"nonce\":\"n\"", BH_FAULT_LOGOUT_NONCE },
        { "wrong-aud", HEADER, ISS ",\"aud\":\"other\"" TIMES EVENTS WHO JTI, BH_FAULT_AUD_WRONG },
        { "wrong-issuer", HEADER, "\"iss\":\"https://evil\"" AUD TIMES EVENTS WHO JTI, BH_FAULT_ISS_WRONG },
        { "no iat", HEADER, ISS AUD ",\"exp\":1790000120" EVENTS WHO JTI, BH_FAULT_IAT_MISSING },
        { "expired", HEADER, ISS AUD ",\"exp\":1789999000,\"iat\":1789998900" EVENTS WHO JTI,
          BH_FAULT_EXPIRED },
        { "sub alone", HEADER, ISS AUD TIMES EVENTS JTI ",\"sub\":\"me\"", 0 },
        { "sid alone", HEADER, ISS AUD TIMES EVENTS JTI ",\"sid\":\"s1\"", 0 },
        { "neither", HEADER, ISS AUD TIMES EVENTS JTI, BH_FAULT_LOGOUT_TARGET },
        { "sid empty", HEADER, ISS AUD TIMES EVENTS JTI ",\"sub\":\"me\",\"sid\":\"\"",
          BH_FAULT_SID_INVALID },
        { "no jti", HEADER, ISS AUD TIMES EVENTS WHO, BH_FAULT_LOGOUT_ID },
        { "jti a number", HEADER, ISS AUD TIMES EVENTS WHO ",\"jti\":1", BH_FAULT_LOGOUT_ID },
    };
    char text[1024];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_logout logout = { .subject = "kept" };

        memset(&replay, 0, sizeof replay);
        snprintf(text, sizeof text, "{%s}", rows[i].claims);
        BH_CHECK_EQ(rows[i].name,
                    logout_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, rows[i].header, text),
                                           NOW_S * BH_NS_PER_S, &logout),
                    rows[i].fault);
        BH_CHECK_EQ(rows[i].name, strcmp(logout.subject, "kept") == 0, rows[i].fault != 0);
    }
    BH_CHECK_DONE();
}

static void
logout_test_replay(void **state)
{
    bh_ns now = NOW_S * BH_NS_PER_S;
    struct bh_logout logout;
    char text[1024];

    memset(&replay, 0, sizeof replay);
    for (int i = 0; i < 2; i++)
        BH_CHECK_EQ("twice",
                    logout_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, HEADER, "{" GOOD "}"), now,
                                           &logout),
                    i ? BH_FAULT_LOGOUT_REPLAYED : 0);
    BH_CHECK_STR("sub", logout.subject, "me");
    BH_CHECK_STR("sid", logout.session, "s1");
    /* until it would be refused for its age, to the last second of the skew */
    BH_CHECK_EQ("late",
                logout_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, HEADER, "{" GOOD "}"),
                                       (NOW_S + 179) * BH_NS_PER_S, &logout),
                BH_FAULT_LOGOUT_REPLAYED);
    BH_CHECK_EQ("expired",
                logout_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, HEADER, "{" GOOD "}"),
                                       (NOW_S + 180) * BH_NS_PER_S, &logout),
                BH_FAULT_EXPIRED);
    for (size_t i = 0; i < BH_LOGOUT_REPLAY_MAX; i++)
        replay.tokens[i].until = now + 1;
    snprintf(text, sizeof text, "{%s,\"jti\":\"j2\"}", ISS AUD TIMES EVENTS WHO);
    BH_CHECK_EQ("full",
                logout_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, HEADER, text), now, &logout),
                BH_FAULT_LOGOUT_REPLAYED);
    BH_CHECK_EQ(
        "room again",
        logout_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, HEADER, text), now + 1, &logout), 0);
    BH_CHECK_DONE();
}

/* Names are modules of the RP-initiated logout plan. */
static void
browser(void **state)
{
    struct bh_provider provider = { .end_session = "https://op.example/end" };
    struct bh_relying_party client = { .id = "bulkhead" };
    struct bh_logout_request request = { "e30.e30.AA", "https://gpu.example/out", "s1" };
    char memory[512];
    struct bh_buf url;

    bh_buf_init_fixed(&url, memory, sizeof memory);
    BH_CHECK_EQ("url", bh_logout_url(&provider, &client, &request, &url), BH_OK);
    BH_CHECK_STR("url", bh_buf_text(&url),
                 "https://op.example/end?client_id=bulkhead&id_token_hint=e30.e30.AA"
                 "&post_logout_redirect_uri=https%3A%2F%2Fgpu.example%2Fout&state=s1");
    provider.end_session[0] = '\0';
    BH_CHECK_EQ("none", bh_logout_url(&provider, &client, &request, &url), BH_UNAVAILABLE);
    BH_CHECK_EQ("rp-init-logout", bh_logout_callback("s1", "state=s1"), 0);
    BH_CHECK_EQ("invalid-state", bh_logout_callback("s1", "state=s2"), BH_FAULT_STATE_WRONG);
    BH_CHECK_EQ("no-state", bh_logout_callback("s1", ""), BH_FAULT_STATE_MISSING);
    BH_CHECK_EQ("two states", bh_logout_callback("s1", "state=s1&state=s1"), BH_FAULT_FORM_DUPLICATE);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(logout_test_tokens),
        cmocka_unit_test(logout_test_replay),
        cmocka_unit_test(browser),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, bh_test_keys_init, bh_test_keys_fini);
}
