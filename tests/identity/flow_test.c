/* Whole sign-ins against the mock provider: each step of src/identity as its caller takes
 * it, with one lie at a time.  Names are modules of the OpenID conformance suite's relying
 * party plans. */
#include "base/test.h"
#include "identity/id_token.h"
#include "identity/jwks_cache.h"
#include "identity/login.h"
#include "tests/lib/mock_provider.h"

#define NOW (UINT64_C(1790000000) * BH_NS_PER_S)

static const struct bh_relying_party client = { .id = "bulkhead",
                                                .redirect = "https://gpu.example/cb",
                                                .scope = "openid groups" };

/* One relying party with what it keeps. */
static struct party {
    struct bh_mock mock;
    struct bh_provider provider;
    struct bh_jwks_cache keys;
    struct bh_login login;
    struct bh_arena *arena;
    struct bh_tokens tokens;
    struct bh_id_token who;
    bh_ns now;
} party;

static void
ask(const struct bh_https_request *request, struct bh_https_response *ret_answer)
{
    party.mock.now = party.now;
    bh_mock_answer(&party.mock, request, ret_answer);
}

static enum bh_identity_fault
discover(void)
{
    struct bh_https_request request;
    struct bh_https_response answer;
    struct bh_err err;

    assert_int_equal(bh_provider_ask(BH_MOCK_ISSUER, false, party.arena, &request, &err), BH_OK);
    ask(&request, &answer);
    return bh_provider_receive(&answer, BH_MOCK_ISSUER, false, &party.provider);
}

static enum bh_identity_fault
browse(void)
{
    char url_memory[2048], query_memory[2048];
    uint8_t random[BH_LOGIN_RANDOM];
    struct bh_buf url, query;

    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (uint8_t)(i * 11);
    bh_buf_init_fixed(&url, url_memory, sizeof url_memory);
    bh_buf_init_fixed(&query, query_memory, sizeof query_memory);
    bh_login_init(&party.login, random, party.now);
    assert_int_equal(
        bh_login_begin(&party.provider, &client, &(struct bh_login_request){ 0 }, &party.login, &url), BH_OK);
    bh_mock_browse(&party.mock, bh_buf_text(&url), &query);
    return bh_login_callback(&party.login, &party.provider, bh_buf_text(&query), party.now);
}

static void
fetch_keys(bool unknown_key)
{
    struct bh_https_request request = { .url = party.provider.jwks };
    struct bh_https_response answer;

    if (!bh_jwks_cache_due(&party.keys, unknown_key, party.now))
        return;
    ask(&request, &answer);
    if (bh_jwks_cache_receive(&party.keys, &answer, party.now) != BH_FAULT_NONE)
        return;
}

/* Verify with the keys kept, and once more with fresh ones when the key is unknown. */
static enum bh_identity_fault
verify(const char *subject)
{
    struct bh_id_token_rules rules = {
        .issuer = party.provider.issuer,
        .client = client.id,
        .when = { party.now, 60, 600 },
        .nonce = subject ? NULL : party.login.nonce,
        .access_token = party.tokens.access,
        .subject = subject,
        .groups = "groups",
    };
    enum bh_identity_fault fault = BH_FAULT_KEY_UNKNOWN;

    fetch_keys(false);
    for (int i = 0; i < 2 && fault == BH_FAULT_KEY_UNKNOWN; i++) {
        struct bh_jws_trust trust = { bh_jwks_cache_keys(&party.keys, party.now), party.provider.algs };

        if (!trust.jwks)
            return BH_FAULT_PROVIDER_DOWN;
        fault = bh_id_token_read(party.tokens.id, &trust, &rules, party.arena, &party.who);
        if (fault == BH_FAULT_KEY_UNKNOWN)
            fetch_keys(true);
    }
    return fault;
}

static enum bh_identity_fault
redeem(void)
{
    struct bh_https_request request;
    struct bh_https_response answer;

    assert_int_equal(bh_login_ask(&party.login, &party.provider, &client, party.arena, &request), BH_OK);
    ask(&request, &answer);
    return bh_tokens_receive(&answer, true, party.arena, &party.tokens);
}

static enum bh_identity_fault
refresh(const char *token)
{
    struct bh_https_request request;
    struct bh_https_response answer;
    enum bh_identity_fault fault;

    assert_int_equal(bh_refresh_ask(&party.provider, &client, token, party.arena, &request), BH_OK);
    ask(&request, &answer);
    fault = bh_tokens_receive(&answer, false, party.arena, &party.tokens);
    return fault == BH_FAULT_NONE && party.tokens.id ? verify("me") : fault;
}

static enum bh_identity_fault
sign_in(void)
{
    enum bh_identity_fault fault = discover();

    if (fault == BH_FAULT_NONE)
        fault = browse();
    if (fault == BH_FAULT_NONE)
        fault = redeem();
    return fault == BH_FAULT_NONE ? verify(NULL) : fault;
}

static void
begin(enum bh_mock_wrong wrong)
{
    bh_arena_free(party.arena);
    memset(&party, 0, sizeof party);
    party.arena = bh_arena_new(1 << 20);
    party.mock.wrong = wrong;
    party.now = NOW;
}

static void
lies(void **state)
{
    static const struct {
        const char *name;
        enum bh_mock_wrong wrong;
        enum bh_identity_fault fault;
    } rows[] = {
        { "client-test", BH_MOCK_HONEST, 0 },
        { "discovery-issuer-mismatch", BH_MOCK_DISCOVERY_ISSUER, BH_FAULT_DISCOVERY_ISSUER },
        { "iss mix-up", BH_MOCK_CALLBACK_ISSUER, BH_FAULT_CALLBACK_ISS },
        { "wrong state", BH_MOCK_CALLBACK_STATE, BH_FAULT_STATE_WRONG },
        { "refused", BH_MOCK_CALLBACK_ERROR, BH_FAULT_CALLBACK_ERROR },
        { "invalid-iss", BH_MOCK_ISS, BH_FAULT_ISS_WRONG },
        { "missing-sub", BH_MOCK_SUB_MISSING, BH_FAULT_SUB_MISSING },
        { "invalid-aud", BH_MOCK_AUD, BH_FAULT_AUD_WRONG },
        { "missing-aud", BH_MOCK_AUD_MISSING, BH_FAULT_AUD_MISSING },
        { "missing-iat", BH_MOCK_IAT_MISSING, BH_FAULT_IAT_MISSING },
        { "nonce-invalid", BH_MOCK_NONCE, BH_FAULT_NONCE_WRONG },
        { "at_hash", BH_MOCK_AT_HASH, BH_FAULT_AT_HASH },
        { "idtoken-sig-none", BH_MOCK_ALG_NONE, BH_FAULT_ALG_NONE },
        { "invalid-sig-hs256", BH_MOCK_ALG_HS256, BH_FAULT_ALG_HMAC },
        { "invalid-sig-rs256", BH_MOCK_SIGNATURE, BH_FAULT_SIGNATURE },
        { "kid-absent-single-jwks", BH_MOCK_KID_ABSENT_SINGLE, 0 },
        { "kid-absent-multiple-jwks", BH_MOCK_KID_ABSENT_MULTIPLE, BH_FAULT_KEY_AMBIGUOUS },
        { "a key never shown", BH_MOCK_KEY_NEVER_SHOWN, BH_FAULT_KEY_UNKNOWN },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        begin(rows[i].wrong);
        BH_CHECK_EQ(rows[i].name, sign_in(), rows[i].fault);
        BH_CHECK_STR(rows[i].name, party.who.subject, rows[i].fault ? "" : "me");
    }
    BH_CHECK_DONE();
}

/* signing-key-rotation, and just before signing: one more question finds the new key. */
static void
rotation(void **state)
{
    begin(BH_MOCK_HONEST);
    BH_CHECK_EQ("before", sign_in(), 0);
    BH_CHECK_EQ("one question", party.mock.jwks_asked, 1);
    party.mock.rotated = true;
    party.now += 10 * BH_NS_PER_S;
    BH_CHECK_EQ("too early to ask again", sign_in(), BH_FAULT_KEY_UNKNOWN);
    BH_CHECK_EQ("one question", party.mock.jwks_asked, 1);
    party.now += 20 * BH_NS_PER_S;
    BH_CHECK_EQ("after", sign_in(), 0);
    BH_CHECK_EQ("two questions", party.mock.jwks_asked, 2);
    BH_CHECK_DONE();
}

static void
code_twice(void **state)
{
    begin(BH_MOCK_HONEST);
    BH_CHECK_EQ("sign in", sign_in(), 0);
    BH_CHECK_EQ("again", redeem(), BH_FAULT_GRANT_REFUSED);
    begin(BH_MOCK_HONEST);
    BH_CHECK_EQ("discover", discover(), 0);
    BH_CHECK_EQ("browse", browse(), 0);
    party.login.verifier[0] ^= 1;
    BH_CHECK_EQ("stolen code without its verifier", redeem(), BH_FAULT_GRANT_REFUSED);
    BH_CHECK_DONE();
}

static void
refreshes(void **state)
{
    static const struct {
        const char *name;
        enum bh_mock_wrong wrong;
        enum bh_identity_fault fault;
    } rows[] = {
        { "refresh ok", BH_MOCK_HONEST, 0 },
        { "refresh invalid-issuer", BH_MOCK_REFRESH_ISS, BH_FAULT_ISS_WRONG },
        { "refresh invalid-sub", BH_MOCK_REFRESH_SUB, BH_FAULT_SUB_CHANGED },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        begin(rows[i].wrong);
        BH_CHECK_EQ(rows[i].name, sign_in(), 0);
        BH_CHECK_STR(rows[i].name, party.tokens.refresh, "r0");
        BH_CHECK_EQ(rows[i].name, refresh("r0"), rows[i].fault);
        BH_CHECK_STR("rotated", party.tokens.refresh, "r1");
    }
    begin(BH_MOCK_HONEST);
    BH_CHECK_EQ("sign in", sign_in(), 0);
    BH_CHECK_EQ("first", refresh("r0"), 0);
    BH_CHECK_EQ("an old token", refresh("r0"), BH_FAULT_GRANT_REFUSED);
    BH_CHECK_EQ("then none is good", refresh("r1"), BH_FAULT_GRANT_REFUSED);
    BH_CHECK_DONE();
}

/* A provider that is down: no new user signs in, and what was learnt stays for a while. */
static void
down(void **state)
{
    begin(BH_MOCK_HONEST);
    party.mock.down = true;
    BH_CHECK_EQ("never seen", sign_in(), BH_FAULT_PROVIDER_DOWN);
    party.mock.down = false;
    party.now += 30 * BH_NS_PER_S;
    BH_CHECK_EQ("up", sign_in(), 0);
    party.mock.down = true;
    party.now += 7200 * BH_NS_PER_S;
    BH_CHECK_EQ("last configuration is kept", discover(), BH_FAULT_PROVIDER_DOWN);
    BH_CHECK_STR("last configuration is kept", party.provider.issuer, BH_MOCK_ISSUER);
    BH_CHECK_EQ("its tokens cannot be had", redeem(), BH_FAULT_PROVIDER_DOWN);
    BH_CHECK("keys are kept", bh_jwks_cache_keys(&party.keys, party.now));
    BH_CHECK_DONE();
}

static int
set_up(void **state)
{
    bh_test_keys_init(state);
    return 0;
}

static int
tear_down(void **state)
{
    bh_arena_free(party.arena);
    bh_test_keys_fini(state);
    return 0;
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies),      cmocka_unit_test(rotation), cmocka_unit_test(code_twice),
        cmocka_unit_test(refreshes), cmocka_unit_test(down),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
