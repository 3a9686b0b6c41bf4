#include "identity/device.h"

#include "base/test.h"

#define NOW (UINT64_C(1790000000) * BH_NS_PER_S)
#define BEGIN                                                                                                \
    "\"device_code\":\"dc\",\"user_code\":\"BDWP-HQPK\","                                                    \
    "\"verification_uri\":\"https://op.example/device\""

static const struct bh_relying_party client = { .id = "cli", .scope = "openid" };
static const struct bh_provider provider = { .device = "https://op.example/device/auth",
                                             .token = "https://op.example/token" };

static struct bh_https_response
answer_of(uint32_t status, const char *body)
{
    return (struct bh_https_response){ status, body, strlen(body), 0 };
}

static void
beginnings(void **state)
{
    static const struct {
        const char *name;
        uint32_t status;
        const char *body;
        enum bh_identity_fault fault;
        uint32_t interval_s;
    } rows[] = {
        { "interval absent", 200, "{" BEGIN ",\"expires_in\":600}", 0, 5 },
        { "interval", 200, "{" BEGIN ",\"expires_in\":600,\"interval\":10}", 0, 10 },
        { "no life", 200, "{" BEGIN "}", BH_FAULT_RESPONSE_VALUE, 0 },
        { "life 0", 200, "{" BEGIN ",\"expires_in\":0}", BH_FAULT_RESPONSE_VALUE, 0 },
        { "interval 0", 200, "{" BEGIN ",\"expires_in\":600,\"interval\":0}", BH_FAULT_RESPONSE_VALUE, 0 },
        { "interval of an hour", 200, "{" BEGIN ",\"expires_in\":600,\"interval\":3600}",
          BH_FAULT_RESPONSE_VALUE, 0 },
        { "interval a text", 200, "{" BEGIN ",\"expires_in\":600,\"interval\":\"5\"}",
          BH_FAULT_RESPONSE_VALUE, 0 },
        { "escape in the code", 200,
          "{\"device_code\":\"dc\",\"user_code\":\"A\\u001b[2J\",\"verification_uri\":"
          "\"https://op.example/device\",\"expires_in\":600}",
          BH_FAULT_RESPONSE_VALUE, 0 },
        { "a page without TLS", 200,
          "{\"device_code\":\"dc\",\"user_code\":\"A\",\"verification_uri\":"
          "\"http://op.example/device\",\"expires_in\":600}",
          BH_FAULT_RESPONSE_VALUE, 0 },
        { "no JSON", 200, "ok", BH_FAULT_RESPONSE_JSON, 0 },
        { "refused", 401, "{}", BH_FAULT_CLIENT_REFUSED, 0 },
        { "down", 500, "", BH_FAULT_PROVIDER_DOWN, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_https_response answer = answer_of(rows[i].status, rows[i].body);
        struct bh_device_login login = { .interval_s = 0 };

        BH_CHECK_EQ(rows[i].name, bh_device_begin(&answer, false, NOW, &login), rows[i].fault);
        BH_CHECK_EQ(rows[i].name, login.interval_s, rows[i].interval_s);
    }
    BH_CHECK_DONE();
}

#define TOKENS "{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"id_token\":\"i\"}"

static void
polls(void **state)
{
    static const struct {
        const char *name;
        uint32_t status;
        const char *body;
        enum bh_identity_fault fault;
        enum bh_device_state next;
        uint32_t interval_s;
    } rows[] = {
        { "not yet", 400, "{\"error\":\"authorization_pending\"}", 0, BH_DEVICE_PENDING, 5 },
        { "too often", 400, "{\"error\":\"slow_down\"}", 0, BH_DEVICE_PENDING, 10 },
        { "refused by the person", 400, "{\"error\":\"access_denied\"}", BH_FAULT_DEVICE_DENIED,
          BH_DEVICE_DENIED, 5 },
        { "too late", 400, "{\"error\":\"expired_token\"}", BH_FAULT_DEVICE_EXPIRED, BH_DEVICE_EXPIRED, 5 },
        { "code used twice", 400, "{\"error\":\"invalid_grant\"}", BH_FAULT_GRANT_REFUSED, BH_DEVICE_DENIED,
          5 },
        { "unknown error", 400, "{\"error\":\"x\"}", BH_FAULT_CLIENT_REFUSED, BH_DEVICE_DENIED, 5 },
        { "no JSON", 400, "x", BH_FAULT_CLIENT_REFUSED, BH_DEVICE_DENIED, 5 },
        { "done", 200, TOKENS, 0, BH_DEVICE_DONE, 5 },
        { "no ID token", 200, "{\"access_token\":\"a\",\"token_type\":\"Bearer\"}",
          BH_FAULT_RESPONSE_ID_TOKEN, BH_DEVICE_DENIED, 5 },
        { "down", 503, "", 0, BH_DEVICE_PENDING, 10 },
        { "no answer", 0, "", 0, BH_DEVICE_PENDING, 10 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_https_response begin = answer_of(200, "{" BEGIN ",\"expires_in\":600}");
        struct bh_https_response answer = answer_of(rows[i].status, rows[i].body);
        struct bh_arena *arena = bh_arena_new(1 << 16);
        struct bh_device_login login;
        struct bh_tokens tokens;

        BH_CHECK_EQ(rows[i].name, bh_device_begin(&begin, false, NOW, &login), 0);
        BH_CHECK(rows[i].name, !bh_device_due(&login, NOW + 5 * BH_NS_PER_S - 1));
        BH_CHECK(rows[i].name, bh_device_due(&login, NOW + 5 * BH_NS_PER_S));
        BH_CHECK_EQ(rows[i].name, bh_device_receive(&login, &answer, NOW + 6 * BH_NS_PER_S, arena, &tokens),
                    rows[i].fault);
        BH_CHECK_EQ(rows[i].name, login.state, rows[i].next);
        BH_CHECK_EQ(rows[i].name, login.interval_s, rows[i].interval_s);
        BH_CHECK_EQ(rows[i].name, bh_device_due(&login, NOW + (6 + rows[i].interval_s) * BH_NS_PER_S),
                    rows[i].next == BH_DEVICE_PENDING);
        bh_arena_free(arena);
    }
    BH_CHECK_DONE();
}

static void
ends(void **state)
{
    struct bh_https_response begin = answer_of(200, "{" BEGIN ",\"expires_in\":600}");
    struct bh_https_response slow = answer_of(400, "{\"error\":\"slow_down\"}");
    struct bh_arena *arena = bh_arena_new(1 << 16);
    struct bh_device_login login;
    struct bh_tokens tokens;

    BH_CHECK_EQ("begin", bh_device_begin(&begin, false, NOW, &login), 0);
    for (int i = 0; i < 30; i++)
        BH_CHECK_EQ("slow", bh_device_receive(&login, &slow, NOW, arena, &tokens), 0);
    BH_CHECK_EQ("bounded", login.interval_s, BH_DEVICE_INTERVAL_MAX_S);
    BH_CHECK("last moment", bh_device_due(&login, NOW + 600 * BH_NS_PER_S - 1));
    BH_CHECK("over", !bh_device_due(&login, NOW + 600 * BH_NS_PER_S));
    BH_CHECK_EQ("over", login.state, BH_DEVICE_EXPIRED);
    BH_CHECK("for good", !bh_device_due(&login, NOW));
    begin = answer_of(200, "{" BEGIN ",\"expires_in\":9007199254740991}");
    BH_CHECK_EQ("long life", bh_device_begin(&begin, false, NOW, &login), 0);
    BH_CHECK_EQ("long life", login.expires, NOW + BH_DEVICE_LIFE_MAX_S * BH_NS_PER_S);
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static void
device_test_questions(void **state)
{
    struct bh_device_login login = { .device_code = "d+c" };
    struct bh_arena *arena = bh_arena_new(1 << 16);
    struct bh_provider without = { .device = "" };
    struct bh_https_request request;

    BH_CHECK_EQ("ask", bh_device_ask(&provider, &client, arena, &request), BH_OK);
    BH_CHECK_STR("ask", request.body, "scope=openid&client_id=cli");
    BH_CHECK_STR("ask", request.url, "https://op.example/device/auth");
    BH_CHECK_EQ("poll", bh_device_poll(&login, &provider, &client, arena, &request), BH_OK);
    BH_CHECK_STR("poll", request.body,
                 "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"
                 "&device_code=d%2Bc&client_id=cli");
    BH_CHECK_EQ("without", bh_device_ask(&without, &client, arena, &request), BH_UNAVAILABLE);
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(beginnings),
    cmocka_unit_test(polls),
    cmocka_unit_test(ends),
    cmocka_unit_test(device_test_questions),
};

BH_TEST_MAIN(tests)
