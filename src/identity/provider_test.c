#include "identity/provider.h"

#include "base/test.h"
#include "identity/form.h"

#define ISS "\"issuer\":\"https://op.example\""
#define ENDS                                                                                                 \
    ",\"authorization_endpoint\":\"https://op.example/auth\",\"token_endpoint\":"                            \
    "\"https://op.example/token\",\"jwks_uri\":\"https://op.example/jwks\""
#define ALG ",\"id_token_signing_alg_values_supported\":[\"RS256\",\"none\",\"HS256\"]"
#define CODE ",\"response_types_supported\":[\"code\",\"id_token\"]"

static void
documents(void **state)
{
    static const struct {
        const char *name, *members;
        enum bh_identity_fault fault;
    } rows[] = {
        { "discovery-openid-config", ISS ENDS ALG CODE, 0 },
        { "discovery-issuer-mismatch", "\"issuer\":\"https://op.example/\"" ENDS ALG CODE,
          BH_FAULT_DISCOVERY_ISSUER },
        { "no issuer", "\"a\":1" ENDS ALG CODE, BH_FAULT_DISCOVERY_ISSUER },
        { "no endpoints", ISS ALG CODE, BH_FAULT_DISCOVERY_ENDPOINT },
        { "an endpoint without TLS", ISS ENDS ALG CODE ",\"end_session_endpoint\":\"http://op.example/end\"",
          BH_FAULT_DISCOVERY_ENDPOINT },
        { "a script", ISS ENDS ALG CODE ",\"end_session_endpoint\":\"javascript:alert(1)\"",
          BH_FAULT_DISCOVERY_ENDPOINT },
        { "an endpoint that is a number", ISS ENDS ALG CODE ",\"userinfo_endpoint\":1",
          BH_FAULT_DISCOVERY_ENDPOINT },
        { "no algorithm", ISS ENDS CODE, BH_FAULT_DISCOVERY_ALG },
        { "only none and secrets",
          ISS ENDS CODE ",\"id_token_signing_alg_values_supported\":[\"none\",\"HS256\"]",
          BH_FAULT_DISCOVERY_ALG },
        { "no code flow", ISS ENDS ALG ",\"response_types_supported\":[\"id_token\"]",
          BH_FAULT_DISCOVERY_CODE },
        { "plain PKCE alone", ISS ENDS ALG CODE ",\"code_challenge_methods_supported\":[\"plain\"]",
          BH_FAULT_DISCOVERY_PKCE },
        { "PKCE", ISS ENDS ALG CODE ",\"code_challenge_methods_supported\":[\"plain\",\"S256\"]", 0 },
        { "an alias without TLS",
          ISS ENDS ALG CODE ",\"mtls_endpoint_aliases\":{\"token_endpoint\":\"http://op.example/t\"}",
          BH_FAULT_DISCOVERY_ENDPOINT },
        { "aliases that are none", ISS ENDS ALG CODE ",\"mtls_endpoint_aliases\":7", 0 },
        { "issuer twice", ISS "," ISS ENDS ALG CODE, BH_FAULT_DISCOVERY_JSON },
    };
    struct bh_provider provider = { .issuer = "last good" };
    char text[2048];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_https_response answer = { 200, text, 0, 0 };

        snprintf(text, sizeof text, "{%s}", rows[i].members);
        answer.length = strlen(text);
        snprintf(provider.issuer, sizeof provider.issuer, "last good");
        BH_CHECK_EQ(rows[i].name, bh_provider_receive(&answer, "https://op.example", false, &provider),
                    rows[i].fault);
        BH_CHECK_STR(rows[i].name, provider.issuer, rows[i].fault ? "last good" : "https://op.example");
        answer.status = 503;
        BH_CHECK_EQ(rows[i].name, bh_provider_receive(&answer, "https://op.example", false, &provider),
                    BH_FAULT_PROVIDER_DOWN);
    }
    BH_CHECK_DONE();
}

static void
provider_test_addresses(void **state)
{
    static const struct {
        const char *url;
        bool good, loopback;
    } rows[] = {
        { "https://op.example", true, true },
        { "https://op.example:8443/a?b=c", true, true },
        { "https://[2001:db8::1]/a", true, true },
        { "http://op.example", false, false },
        { "http://127.0.0.1:3000/a", false, true },
        { "http://localhost", false, true },
        { "http://localhost.evil.example", false, false },
        { "http://127.0.0.1@evil.example", false, false },
        { "http://127.0.0.1:1@evil.example", false, false },
        { "https://", false, false },
        { "https:///a", false, false },
        { "https://:443", false, false },
        { "https://user@op.example", false, false },
        { "https://op.example/#a", false, false },
        { "https://op.example\\@evil.example", false, false },
        { "https://op.example/a b", false, false },
        { "https://op.example/\r\nHost:x", false, false },
        { "https://\xc3\xb6p.example", false, false },
        { "HTTPS://op.example", false, false },
        { "file:///etc/passwd", false, false },
        { "javascript:alert(1)", false, false },
        { "//op.example", false, false },
        { "", false, false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        BH_CHECK_EQ(rows[i].url, bh_url_check(rows[i].url, false), rows[i].good);
        BH_CHECK_EQ(rows[i].url, bh_url_check(rows[i].url, true), rows[i].loopback);
    }
    BH_CHECK_DONE();
}

static void
asking(void **state)
{
    struct bh_relying_party client = { .id = "bulk head", .secret = "p:a%ss" };
    struct bh_arena *arena = bh_arena_new(1 << 16);
    struct bh_https_request request;
    struct bh_buf form;
    char memory[100];
    struct bh_err err;

    BH_CHECK_EQ("ask", bh_provider_ask("https://op.example/t/", false, arena, &request, &err), BH_OK);
    BH_CHECK_STR("ask", request.url, "https://op.example/t/.well-known/openid-configuration");
    BH_CHECK("ask", !request.post && !request.body && !request.authorization);
    BH_CHECK_EQ("query", bh_provider_ask("https://op.example/?a", false, arena, &request, &err), BH_INVALID);
    bh_buf_init_fixed(&form, memory, sizeof memory);
    bh_form_put(&form, "a", "b");
    BH_CHECK_EQ("post", bh_provider_post("https://op.example/token", &client, &form, arena, &request), BH_OK);
    /* printf 'bulk%%20head:p%%3Aa%%25ss' | base64 */
    BH_CHECK_STR("basic", request.authorization, "Basic YnVsayUyMGhlYWQ6cCUzQWElMjVzcw==");
    BH_CHECK_STR("body", request.body, "a=b");
    client.secret = NULL;
    bh_buf_clear(&form);
    bh_form_put(&form, "a", "b");
    BH_CHECK_EQ("public", bh_provider_post("https://op.example/token", &client, &form, arena, &request),
                BH_OK);
    BH_CHECK("public", !request.authorization && request.post);
    BH_CHECK_STR("public", request.body, "a=b&client_id=bulk%20head");
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static const char *
posted(const struct bh_provider *provider, const struct bh_relying_party *client, struct bh_arena *arena,
       struct bh_https_request *request)
{
    struct bh_buf form;
    char memory[1000];

    bh_buf_init_fixed(&form, memory, sizeof memory);
    bh_form_put(&form, "a", "b");
    assert_int_equal(bh_provider_post(bh_provider_token_url(provider, client), client, &form, arena, request),
                     BH_OK);
    return request->body;
}

/* A provider with other addresses for clients that show a certificate. */
static void
proofs(void **state)
{
    static const char document[] =
        "{" ISS ENDS ALG CODE ",\"device_authorization_endpoint\":\"https://op.example/d\","
        "\"mtls_endpoint_aliases\":{\"token_endpoint\":\"https://mtls.op.example/token\"}}";
    struct bh_https_response answer = { 200, document, sizeof document - 1, 0 };
    struct bh_arena *arena = bh_arena_new(1 << 16);
    struct bh_relying_party client = { .id = "bh", .assertion = "h.p.s" };
    struct bh_https_request request;
    struct bh_provider provider;

    BH_CHECK_EQ("read", bh_provider_receive(&answer, "https://op.example", false, &provider), 0);
    BH_CHECK_STR("key", posted(&provider, &client, arena, &request),
                 "a=b&client_id=bh&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3A"
                 "client-assertion-type%3Ajwt-bearer&client_assertion=h.p.s");
    BH_CHECK_STR("key", request.url, "https://op.example/token");
    BH_CHECK("key", !request.authorization && !request.certificate);
    client = (struct bh_relying_party){ .id = "bh", .certificate = "mine" };
    BH_CHECK_STR("certificate", posted(&provider, &client, arena, &request), "a=b&client_id=bh");
    BH_CHECK_STR("certificate", request.url, "https://mtls.op.example/token");
    BH_CHECK_STR("certificate", request.certificate, "mine");
    BH_CHECK("certificate", !request.authorization);
    BH_CHECK_STR("no alias", bh_provider_device_url(&provider, &client), "https://op.example/d");
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(proofs),
    cmocka_unit_test(documents),
    cmocka_unit_test(provider_test_addresses),
    cmocka_unit_test(asking),
};

BH_TEST_MAIN(tests)
