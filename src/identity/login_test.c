#include "identity/login.h"

#include "base/test.h"

#define NOW (UINT64_C(1790000000) * BH_NS_PER_S)
#define STATE "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static const struct bh_relying_party client = { .id = "bulkhead",
                                                .redirect = "https://gpu.example/cb",
                                                .scope = "openid profile" };
static const struct bh_provider plain_provider = {
    .issuer = "https://op.example",
    .authorization = "https://op.example/auth?t=1",
    .token = "https://op.example/token",
};

/* State of zeros, nonce of ones, verifier of twos. */
static struct bh_login
new_login(void)
{
    uint8_t random[BH_LOGIN_RANDOM];
    struct bh_login login;

    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (uint8_t)(i / BH_SECRET_BYTES);
    bh_login_init(&login, random, NOW);
    return login;
}

static void
redirect(void **state)
{
    struct bh_login_request step_up = { .fresh = true, .max_age_s = 300, .acr_values = "phr phrh" };
    struct bh_login login = new_login();
    char memory[1024], challenge[BH_SECRET_TEXT], want[1024];
    struct bh_buf url;

    bh_secret_challenge(login.verifier, challenge);
    bh_buf_init_fixed(&url, memory, sizeof memory);
    BH_CHECK_EQ("begin", bh_login_begin(&plain_provider, &client, &step_up, &login, &url), BH_OK);
    snprintf(want, sizeof want,
             "https://op.example/auth?t=1&response_type=code&client_id=bulkhead&redirect_uri="
             "https%%3A%%2F%%2Fgpu.example%%2Fcb&scope=openid%%20profile&state=%s&nonce=%s"
             "&code_challenge=%s&code_challenge_method=S256&prompt=login&max_age=300"
             "&acr_values=phr%%20phrh",
             STATE, login.nonce, challenge);
    BH_CHECK_STR("address", bh_buf_text(&url), want);
    BH_CHECK("the verifier stays here", !strstr(want, login.verifier));
    bh_buf_init_fixed(&url, memory, 100);
    BH_CHECK_EQ("no room", bh_login_begin(&plain_provider, &client, &step_up, &login, &url), BH_FULL);
    BH_CHECK_DONE();
}

static void
callbacks(void **state)
{
    static const struct {
        const char *name, *query;
        enum bh_identity_fault fault;
        bool iss_parameter, used; /* used: the login is over */
    } rows[] = {
        { "good", "code=c1&state=" STATE, 0, false, true },
        { "with iss", "code=c1&state=" STATE "&iss=https%3A%2F%2Fop.example", 0, true, true },
        { "more parameters", "code=c1&state=" STATE "&session_state=x", 0, false, true },
        { "iss missing", "code=c1&state=" STATE, BH_FAULT_CALLBACK_ISS_MISSING, true, true },
        { "iss mix-up", "code=c1&state=" STATE "&iss=https%3A%2F%2Fevil.example", BH_FAULT_CALLBACK_ISS, true,
          true },
        { "iss mix-up, unannounced", "code=c1&state=" STATE "&iss=https%3A%2F%2Fevil.example",
          BH_FAULT_CALLBACK_ISS, false, true },
        { "no state", "code=c1", BH_FAULT_STATE_MISSING, false, false },
        { "wrong state", "code=c1&state=x" STATE, BH_FAULT_STATE_WRONG, false, false },
        { "empty state", "code=c1&state=", BH_FAULT_STATE_WRONG, false, false },
        { "two states", "state=" STATE "&code=c1&state=" STATE, BH_FAULT_FORM_DUPLICATE, false, false },
        { "two codes", "state=" STATE "&code=c1&code=c2", BH_FAULT_FORM_DUPLICATE, false, false },
        { "no code", "state=" STATE, BH_FAULT_CALLBACK_CODE, false, true },
        { "empty code", "code=&state=" STATE, BH_FAULT_CALLBACK_CODE, false, true },
        { "form-post-error", "error=access_denied&error_description=%3Cscript%3E&state=" STATE,
          BH_FAULT_CALLBACK_ERROR, false, true },
        { "error and code", "error=access_denied&code=c1&state=" STATE, BH_FAULT_CALLBACK_ERROR, false,
          true },
        { "error without state", "error=access_denied", BH_FAULT_STATE_MISSING, false, false },
        { "nothing", "", BH_FAULT_STATE_MISSING, false, false },
        { "ampersand", "&", BH_FAULT_FORM, false, false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_provider provider = plain_provider;
        struct bh_login login = new_login();

        provider.iss_parameter = rows[i].iss_parameter;
        BH_CHECK_EQ(rows[i].name, bh_login_callback(&login, &provider, rows[i].query, NOW + BH_NS_PER_S),
                    rows[i].fault);
        BH_CHECK_EQ(rows[i].name, login.used, rows[i].used);
        BH_CHECK_STR(rows[i].name, login.code, rows[i].fault ? "" : "c1");
        BH_CHECK_STR(rows[i].name, login.error,
                     rows[i].fault == BH_FAULT_CALLBACK_ERROR ? "access_denied" : "");
    }
    BH_CHECK_DONE();
}

static void
once_and_in_time(void **state)
{
    static const struct {
        const char *name;
        bh_ns at;
        enum bh_identity_fault fault;
    } rows[] = {
        { "at once", NOW, 0 },
        { "after 10 min", NOW + 600 * BH_NS_PER_S, 0 },
        { "later", NOW + 600 * BH_NS_PER_S + 1, BH_FAULT_STATE_EXPIRED },
        { "the clock jumped back", NOW - 3600 * BH_NS_PER_S, BH_FAULT_STATE_EXPIRED },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_login login = new_login();

        BH_CHECK_EQ(rows[i].name,
                    bh_login_callback(&login, &plain_provider, "code=c&state=" STATE, rows[i].at),
                    rows[i].fault);
        BH_CHECK_EQ(rows[i].name, bh_login_callback(&login, &plain_provider, "code=c&state=" STATE, NOW),
                    BH_FAULT_STATE_USED);
    }
    BH_CHECK_DONE();
}

/* The provider's words reach no user unless they are an error code. */
static void
errors_are_not_reflected(void **state)
{
    static const char *const rows[] = {
        "error=%3Cscript%3Ealert(1)%3C%2Fscript%3E&state=" STATE,
        "error=Access+Denied&state=" STATE,
        "error=https%3A%2F%2Fevil.example&state=" STATE,
        "error=&state=" STATE,
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_login login = new_login();

        BH_CHECK_EQ(rows[i], bh_login_callback(&login, &plain_provider, rows[i], NOW),
                    BH_FAULT_CALLBACK_ERROR);
        BH_CHECK_STR(rows[i], login.error, "");
    }
    BH_CHECK_DONE();
}

static void
login_test_questions(void **state)
{
    struct bh_arena *arena = bh_arena_new(1 << 16);
    struct bh_login login = new_login();
    struct bh_https_request request;
    char want[512];

    snprintf(login.code, sizeof login.code, "c/1");
    BH_CHECK_EQ("code", bh_login_ask(&login, &plain_provider, &client, arena, &request), BH_OK);
    snprintf(want, sizeof want,
             "grant_type=authorization_code&code=c%%2F1&redirect_uri=https%%3A%%2F%%2Fgpu."
             "example"
             "%%2Fcb&code_verifier=%s&client_id=bulkhead",
             login.verifier);
    BH_CHECK_STR("code", request.body, want);
    BH_CHECK_STR("code", request.url, "https://op.example/token");
    BH_CHECK_EQ("refresh", bh_refresh_ask(&plain_provider, &client, "r1", arena, &request), BH_OK);
    BH_CHECK_STR("refresh", request.body, "grant_type=refresh_token&refresh_token=r1&client_id=bulkhead");
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static void
login_test_answers(void **state)
{
    static const struct {
        const char *name;
        uint32_t status;
        const char *body;
        enum bh_identity_fault fault;
        bool refresh;
    } rows[] = {
        { "good", 200,
          "{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"id_token\":\"i\","
          "\"refresh_token\":\"r\",\"expires_in\":300,\"scope\":\"openid\"}",
          0, false },
        { "bearer", 200, "{\"access_token\":\"a\",\"token_type\":\"bearer\",\"id_token\":\"i\"}", 0, false },
        { "refresh ok", 200, "{\"access_token\":\"a\",\"token_type\":\"Bearer\"}", 0, true },
        { "no ID token", 200, "{\"access_token\":\"a\",\"token_type\":\"Bearer\"}",
          BH_FAULT_RESPONSE_ID_TOKEN, false },
        { "no access token", 200, "{\"token_type\":\"Bearer\",\"id_token\":\"i\"}", BH_FAULT_RESPONSE_TYPE,
          false },
        { "another type", 200, "{\"access_token\":\"a\",\"token_type\":\"DPoP\",\"id_token\":\"i\"}",
          BH_FAULT_RESPONSE_TYPE, false },
        { "a token twice", 200, "{\"access_token\":\"a\",\"access_token\":\"b\",\"token_type\":\"Bearer\"}",
          BH_FAULT_RESPONSE_JSON, false },
        { "a token that is a number", 200, "{\"access_token\":1,\"token_type\":\"Bearer\"}",
          BH_FAULT_RESPONSE_VALUE, true },
        { "a token with a line break", 200, "{\"access_token\":\"a\\r\\nb\",\"token_type\":\"Bearer\"}",
          BH_FAULT_RESPONSE_VALUE, true },
        { "negative life", 200, "{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"expires_in\":-1}",
          BH_FAULT_RESPONSE_VALUE, true },
        { "a page", 200, "<html>", BH_FAULT_RESPONSE_JSON, false },
        { "a list", 200, "[]", BH_FAULT_RESPONSE_JSON, false },
        { "code used twice", 400, "{\"error\":\"invalid_grant\"}", BH_FAULT_GRANT_REFUSED, false },
        { "wrong secret", 401, "{\"error\":\"invalid_client\"}", BH_FAULT_CLIENT_REFUSED, false },
        { "a page of refusal", 403, "<html>", BH_FAULT_CLIENT_REFUSED, false },
        { "redirect", 302, "", BH_FAULT_PROVIDER_DOWN, false },
        { "broken", 500, "{\"error\":\"invalid_grant\"}", BH_FAULT_PROVIDER_DOWN, false },
        { "no answer", 0, "", BH_FAULT_PROVIDER_DOWN, false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_https_response answer = { rows[i].status, rows[i].body, strlen(rows[i].body), 0 };
        struct bh_arena *arena = bh_arena_new(1 << 16);
        struct bh_tokens tokens = { .access = "kept" };

        BH_CHECK_EQ(rows[i].name, bh_tokens_receive(&answer, !rows[i].refresh, arena, &tokens),
                    rows[i].fault);
        BH_CHECK_STR(rows[i].name, tokens.access, rows[i].fault ? "kept" : "a");
        if (i == 0) {
            BH_CHECK_STR("id", tokens.id, "i");
            BH_CHECK_STR("refresh", tokens.refresh, "r");
            BH_CHECK_EQ("expires", tokens.expires_s, 300);
        }
        bh_arena_free(arena);
    }
    BH_CHECK_DONE();
}

static void
userinfo(void **state)
{
    static const struct {
        const char *name;
        uint32_t status;
        const char *body;
        enum bh_identity_fault fault;
    } rows[] = {
        { "scope-userinfo-claims", 200, "{\"sub\":\"me\",\"name\":\"x\"}", 0 },
        { "userinfo-invalid-sub", 200, "{\"sub\":\"you\"}", BH_FAULT_USERINFO_SUB },
        { "no sub", 200, "{}", BH_FAULT_USERINFO_SUB },
        { "no JSON", 200, "me", BH_FAULT_RESPONSE_JSON },
        { "refused", 401, "{}", BH_FAULT_PROVIDER_DOWN },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_https_response answer = { rows[i].status, rows[i].body, strlen(rows[i].body), 0 };

        BH_CHECK_EQ(rows[i].name, bh_userinfo_check(&answer, "me"), rows[i].fault);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(redirect),
    cmocka_unit_test(callbacks),
    cmocka_unit_test(once_and_in_time),
    cmocka_unit_test(errors_are_not_reflected),
    cmocka_unit_test(login_test_questions),
    cmocka_unit_test(login_test_answers),
    cmocka_unit_test(userinfo),
};

BH_TEST_MAIN(tests)
