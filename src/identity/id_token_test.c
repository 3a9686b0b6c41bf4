#include "identity/id_token.h"

#include <stdlib.h>

#include "base/test.h"
#include "identity/fixture_test.h"

#define NOW_S 1790000000u
#define ISS "\"iss\":\"https://op.example\""
#define AUD ",\"aud\":\"bulkhead\""
#define SUB ",\"sub\":\"248289761001\""
#define EXP ",\"exp\":1790000300"
#define IAT ",\"iat\":1790000000"
#define NONCE ",\"nonce\":\"n-0S6_WzA2Mj\""
#define GOOD ISS AUD SUB EXP IAT NONCE
#define JSON_HEADER "{\"alg\":\"RS256\",\"kid\":\"rsa\"}"

static const char *trusted[] = { "api" }, *acr_wanted[] = { "phr", "phrh" };

static struct bh_id_token_rules
plain_rules(void)
{
    return (struct bh_id_token_rules){
        .issuer = "https://op.example",
        .client = "bulkhead",
        .audiences = { trusted, 1 },
        .when = { NOW_S * BH_NS_PER_S, 60, 600 },
        .nonce = "n-0S6_WzA2Mj",
        .groups = "groups",
    };
}

static enum bh_identity_fault
id_token_test_read_token(const char *token, const struct bh_id_token_rules *rules, struct bh_id_token *ret)
{
    struct bh_jws_trust trust = { bh_test_jwks(), BH_JWS_ALL & ~BH_JWS_BIT(BH_JWS_ES384) };
    struct bh_arena *arena = bh_arena_new(1 << 20);
    enum bh_identity_fault fault = bh_id_token_read(token, &trust, rules, arena, ret);

    bh_arena_free(arena);
    return fault;
}

/* The names in front are modules of the OpenID conformance suite's relying party plans
 * that the row mirrors. */
static const struct {
    const char *name, *claims;
    enum bh_identity_fault fault;
} claim_rows[] = {
    { "client-test", GOOD, 0 },
    { "unknown claims are ignored", GOOD ",\"x\":{\"y\":[null,true]}", 0 },
    { "invalid-iss", "\"iss\":\"https://evil.example\"" AUD SUB EXP IAT NONCE, BH_FAULT_ISS_WRONG },
    { "slash after iss", "\"iss\":\"https://op.example/\"" AUD SUB EXP IAT NONCE, BH_FAULT_ISS_WRONG },
    { "iss in another case", "\"iss\":\"https://OP.example\"" AUD SUB EXP IAT NONCE, BH_FAULT_ISS_WRONG },
    { "missing-iss", "\"a\":1" AUD SUB EXP IAT NONCE, BH_FAULT_ISS_MISSING },
    { "iss a list", "\"iss\":[\"https://op.example\"]" AUD SUB EXP IAT NONCE, BH_FAULT_ISS_MISSING },
    { "missing-sub", ISS AUD EXP IAT NONCE, BH_FAULT_SUB_MISSING },
    { "sub empty", ISS AUD EXP IAT NONCE ",\"sub\":\"\"", BH_FAULT_SUB_INVALID },
    { "sub a number", ISS AUD EXP IAT NONCE ",\"sub\":1", BH_FAULT_SUB_INVALID },
    { "sub with a line break", ISS AUD EXP IAT NONCE ",\"sub\":\"a\\nb\"", BH_FAULT_SUB_INVALID },
    { "missing-aud", ISS SUB EXP IAT NONCE, BH_FAULT_AUD_MISSING },
    { "invalid-aud", ISS ",\"aud\":\"other\"" SUB EXP IAT NONCE, BH_FAULT_AUD_WRONG },
    { "aud empty", ISS ",\"aud\":\"\"" SUB EXP IAT NONCE, BH_FAULT_AUD_WRONG },
    { "aud longer than ours", ISS ",\"aud\":\"bulkhead2\"" SUB EXP IAT NONCE, BH_FAULT_AUD_WRONG },
    { "aud a number", ISS ",\"aud\":1" SUB EXP IAT NONCE, BH_FAULT_AUD_INVALID },
    { "aud no one", ISS ",\"aud\":[]" SUB EXP IAT NONCE, BH_FAULT_AUD_INVALID },
    { "aud a list of us", ISS ",\"aud\":[\"bulkhead\"]" SUB EXP IAT NONCE, 0 },
    { "aud us twice", ISS ",\"aud\":[\"bulkhead\",\"bulkhead\"]" SUB EXP IAT NONCE, BH_FAULT_AUD_INVALID },
    { "aud with a number", ISS ",\"aud\":[\"bulkhead\",1]" SUB EXP IAT NONCE, BH_FAULT_AUD_INVALID },
    { "aud of others", ISS ",\"aud\":[\"api\",\"other\"]" SUB EXP IAT NONCE, BH_FAULT_AUD_WRONG },
    { "us second, no azp", ISS ",\"aud\":[\"api\",\"bulkhead\"]" SUB EXP IAT NONCE, BH_FAULT_AZP_MISSING },
    { "us second, azp us", ISS ",\"aud\":[\"api\",\"bulkhead\"],\"azp\":\"bulkhead\"" SUB EXP IAT NONCE, 0 },
    { "us second, azp another", ISS ",\"aud\":[\"api\",\"bulkhead\"],\"azp\":\"api\"" SUB EXP IAT NONCE,
      BH_FAULT_AZP_WRONG },
    { "an unknown audience", ISS ",\"aud\":[\"bulkhead\",\"evil\"],\"azp\":\"bulkhead\"" SUB EXP IAT NONCE,
      BH_FAULT_AUD_UNTRUSTED },
    { "azp another, one aud", GOOD ",\"azp\":\"other\"", BH_FAULT_AZP_WRONG },
    { "azp a number", GOOD ",\"azp\":1", BH_FAULT_AZP_WRONG },
    { "aud key twice", GOOD ",\"aud\":\"other\"", BH_FAULT_PAYLOAD_JSON },
    { "missing-exp", ISS AUD SUB IAT NONCE, BH_FAULT_EXP_MISSING },
    { "exp a text", ISS AUD SUB IAT NONCE ",\"exp\":\"1790000300\"", BH_FAULT_EXP_INVALID },
    { "exp 1e300", ISS AUD SUB IAT NONCE ",\"exp\":1e300", BH_FAULT_PAYLOAD_JSON },
    { "exp 2^63", ISS AUD SUB IAT NONCE ",\"exp\":9223372036854775808", BH_FAULT_PAYLOAD_JSON },
    { "exp 2^63 - 1", ISS AUD SUB IAT NONCE ",\"exp\":9223372036854775807", BH_FAULT_EXP_INVALID },
    { "exp after 9999", ISS AUD SUB IAT NONCE ",\"exp\":253402300800", BH_FAULT_EXP_INVALID },
    { "exp -1", ISS AUD SUB IAT NONCE ",\"exp\":-1", BH_FAULT_EXP_INVALID },
    { "exp null", ISS AUD SUB IAT NONCE ",\"exp\":null", BH_FAULT_EXP_INVALID },
    { "exp within the skew", ISS AUD SUB IAT NONCE ",\"exp\":1789999941", 0 },
    { "exp at its end", ISS AUD SUB IAT NONCE ",\"exp\":1789999940", BH_FAULT_EXPIRED },
    { "missing-iat", ISS AUD SUB EXP NONCE, BH_FAULT_IAT_MISSING },
    { "iat a text", ISS AUD SUB EXP NONCE ",\"iat\":\"now\"", BH_FAULT_IAT_INVALID },
    { "iat -1", ISS AUD SUB EXP NONCE ",\"iat\":-1", BH_FAULT_IAT_INVALID },
    { "iat ahead, within the skew", ISS AUD SUB EXP NONCE ",\"iat\":1790000060", 0 },
    { "iat in the future", ISS AUD SUB EXP NONCE ",\"iat\":1790000061", BH_FAULT_IAT_FUTURE },
    { "iat 10 min ago and the skew", ISS AUD SUB EXP NONCE ",\"iat\":1789999340", 0 },
    { "iat too old", ISS AUD SUB EXP NONCE ",\"iat\":1789999339", BH_FAULT_IAT_OLD },
    { "nbf now", GOOD ",\"nbf\":1790000060", 0 },
    { "nbf later", GOOD ",\"nbf\":1790000061", BH_FAULT_NBF_FUTURE },
    { "nbf a text", GOOD ",\"nbf\":\"1\"", BH_FAULT_NBF_INVALID },
    { "nonce-missing", ISS AUD SUB EXP IAT, BH_FAULT_NONCE_MISSING },
    { "nonce-invalid", ISS AUD SUB EXP IAT ",\"nonce\":\"n-0S6_WzA2MX\"", BH_FAULT_NONCE_WRONG },
    { "nonce a number", ISS AUD SUB EXP IAT ",\"nonce\":1", BH_FAULT_NONCE_MISSING },
    { "auth_time a text", GOOD ",\"auth_time\":\"1\"", BH_FAULT_AUTH_TIME_INVALID },
    { "auth_time in the future", GOOD ",\"auth_time\":1790000061", BH_FAULT_AUTH_TIME_INVALID },
    { "acr a number", GOOD ",\"acr\":1", BH_FAULT_ACR_WRONG },
    { "amr a text", GOOD ",\"amr\":\"pwd\"", BH_FAULT_AMR_INVALID },
    { "amr of numbers", GOOD ",\"amr\":[1]", BH_FAULT_AMR_INVALID },
    { "sid a list", GOOD ",\"sid\":[]", BH_FAULT_SID_INVALID },
    { "groups", GOOD ",\"groups\":[\"a\",\"b\"]", 0 },
    { "groups a text", GOOD ",\"groups\":\"a\"", BH_FAULT_GROUPS_INVALID },
    { "groups of numbers", GOOD ",\"groups\":[1]", BH_FAULT_GROUPS_INVALID },
    { "groups left out", GOOD ",\"_claim_names\":{\"groups\":\"src1\"},\"_claim_sources\":{}",
      BH_FAULT_GROUPS_ELSEWHERE },
    { "other claims left out", GOOD ",\"_claim_names\":{\"photo\":\"src1\"}", 0 },
};

static void
claims(void **state)
{
    struct bh_id_token_rules rules = plain_rules();
    struct bh_id_token token;
    char text[1024];

    for (size_t i = 0; i < BH_COUNT(claim_rows); i++) {
        snprintf(text, sizeof text, "{%s}", claim_rows[i].claims);
        token.subject[0] = '!';
        BH_CHECK_EQ(claim_rows[i].name,
                    id_token_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER, text),
                                             &rules, &token),
                    claim_rows[i].fault);
        BH_CHECK_EQ(claim_rows[i].name, token.subject[0], claim_rows[i].fault ? '!' : '2');
    }
    BH_CHECK_DONE();
}

static void
signatures(void **state)
{
    static const struct {
        const char *name;
        enum bh_test_key key;
        enum bh_jws_alg alg;
        const char *header;
        enum bh_identity_fault fault;
    } rows[] = {
        { "idtoken-sig-rs256", BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER, 0 },
        { "idtoken-sig-ps256", BH_TEST_RSA, BH_JWS_PS256, "{\"alg\":\"PS256\",\"kid\":\"rsa\"}", 0 },
        { "idtoken-sig-es256", BH_TEST_P256, BH_JWS_ES256, "{\"alg\":\"ES256\",\"kid\":\"p256\"}", 0 },
        { "kid-absent-single-jwks", BH_TEST_P256, BH_JWS_ES256, "{\"alg\":\"ES256\"}", 0 },
        { "kid-absent-multiple-jwks", BH_TEST_RSA, BH_JWS_RS256, "{\"alg\":\"RS256\"}",
          BH_FAULT_KEY_AMBIGUOUS },
        { "signing-key-rotation", BH_TEST_RSA, BH_JWS_RS256, "{\"alg\":\"RS256\",\"kid\":\"new\"}",
          BH_FAULT_KEY_UNKNOWN },
        { "idtoken-sig-none", BH_TEST_RSA, BH_JWS_ALGS, "{\"alg\":\"none\"}", BH_FAULT_ALG_NONE },
        { "invalid-sig-rs256", BH_TEST_RSA_OTHER, BH_JWS_RS256, JSON_HEADER, BH_FAULT_SIGNATURE },
        { "invalid-sig-es256", BH_TEST_P256, BH_JWS_ES256, "{\"alg\":\"ES256\",\"kid\":\"p384\"}",
          BH_FAULT_KEY_MISMATCH },
        { "not registered", BH_TEST_P384, BH_JWS_ES384, "{\"alg\":\"ES384\",\"kid\":\"p384\"}",
          BH_FAULT_ALG_REFUSED },
        { "typ JWT", BH_TEST_RSA, BH_JWS_RS256, "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"typ\":\"jwt\"}", 0 },
        { "an access token", BH_TEST_RSA, BH_JWS_RS256,
          "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"typ\":\"at+jwt\"}", BH_FAULT_HEADER_TYPE },
        { "a logout token", BH_TEST_RSA, BH_JWS_RS256,
          "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"typ\":\"logout+jwt\"}", BH_FAULT_HEADER_TYPE },
    };
    struct bh_id_token_rules rules = plain_rules();
    struct bh_id_token token;

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].name,
                    id_token_test_read_token(
                        bh_test_sign(rows[i].key, rows[i].alg, rows[i].header, "{" GOOD "}"), &rules, &token),
                    rows[i].fault);
    BH_CHECK_EQ(
        "invalid-sig-hs256",
        id_token_test_read_token(bh_test_sign_hmac("{\"alg\":\"HS256\"}", "{" GOOD "}"), &rules, &token),
        BH_FAULT_ALG_HMAC);
    BH_CHECK_EQ(
        "payload a list",
        id_token_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER, "[]"), &rules, &token),
        BH_FAULT_PAYLOAD_JSON);
    BH_CHECK_EQ(
        "payload no JSON",
        id_token_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER, "x"), &rules, &token),
        BH_FAULT_PAYLOAD_JSON);
    BH_CHECK_DONE();
}

/* OpenID Connect Core, appendix A: hashes of its access token and code. */
#define ACCESS "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"
#define CODE "Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk"

static void
step_up_and_hashes(void **state)
{
    static const struct {
        const char *name, *claims;
        struct bh_id_token_rules rules;
        enum bh_identity_fault fault;
    } rows[] = {
        { "at_hash", ",\"at_hash\":\"77QmUPtjPfzWtF2AnpK9RQ\"", { .access_token = ACCESS }, 0 },
        { "at_hash wrong",
          ",\"at_hash\":\"77QmUPtjPfzWtF2AnpK9RA\"",
          { .access_token = ACCESS },
          BH_FAULT_AT_HASH },
        { "at_hash a number", ",\"at_hash\":1", { .access_token = ACCESS }, BH_FAULT_AT_HASH },
        { "at_hash absent", "", { .access_token = ACCESS }, 0 },
        { "c_hash", ",\"c_hash\":\"LDktKdoQak3Pk0cnXxCltA\"", { .code = CODE }, 0 },
        { "c_hash wrong", ",\"c_hash\":\"77QmUPtjPfzWtF2AnpK9RQ\"", { .code = CODE }, BH_FAULT_C_HASH },
        { "fresh", ",\"auth_time\":1789999640", { .max_age = true, .max_age_s = 300 }, 0 },
        { "stale",
          ",\"auth_time\":1789999639",
          { .max_age = true, .max_age_s = 300 },
          BH_FAULT_AUTH_TIME_OLD },
        { "at once", ",\"auth_time\":1789999939", { .max_age = true }, BH_FAULT_AUTH_TIME_OLD },
        { "not said", "", { .max_age = true, .max_age_s = 300 }, BH_FAULT_AUTH_TIME_MISSING },
        { "acr", ",\"acr\":\"phrh\"", { .acr = { acr_wanted, 2 } }, 0 },
        { "acr lower", ",\"acr\":\"0\"", { .acr = { acr_wanted, 2 } }, BH_FAULT_ACR_WRONG },
        { "acr absent", "", { .acr = { acr_wanted, 2 } }, BH_FAULT_ACR_WRONG },
        { "amr", ",\"amr\":[\"pwd\",\"otp\"]", { .amr = "otp" }, 0 },
        { "amr without", ",\"amr\":[\"pwd\"]", { .amr = "otp" }, BH_FAULT_AMR_WRONG },
        { "amr absent", "", { .amr = "otp" }, BH_FAULT_AMR_WRONG },
        { "refresh ok", "", { .subject = "248289761001" }, 0 },
        { "refresh invalid-sub", "", { .subject = "another" }, BH_FAULT_SUB_CHANGED },
    };
    struct bh_id_token token;
    char text[1024];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_id_token_rules rules = rows[i].rules;

        rules.issuer = plain_rules().issuer;
        rules.client = plain_rules().client;
        rules.when = plain_rules().when;
        snprintf(text, sizeof text, "{%s%s}", GOOD, rows[i].claims);
        BH_CHECK_EQ(rows[i].name,
                    id_token_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER, text),
                                             &rules, &token),
                    rows[i].fault);
    }
    BH_CHECK_DONE();
}

static void
what_is_known(void **state)
{
    struct bh_jws_trust trust = { bh_test_jwks(), BH_JWS_ALL };
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_id_token_rules rules = plain_rules();
    struct bh_id_token token;
    const char *text = bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER,
                                    "{" GOOD ",\"sid\":\"s1\",\"acr\":\"phr\",\"amr\":[\"hwk\"],"
                                    "\"auth_time\":1789999990,\"groups\":[\"ml\",\"ops\"]}");

    BH_CHECK_EQ("read", bh_id_token_read(text, &trust, &rules, arena, &token), 0);
    BH_CHECK_STR("sub", token.subject, "248289761001");
    BH_CHECK_STR("sid", token.session, "s1");
    BH_CHECK_STR("acr", token.acr, "phr");
    BH_CHECK_EQ("exp", token.expires_s, 1790000300);
    BH_CHECK_EQ("iat", token.issued_s, 1790000000);
    BH_CHECK_EQ("auth_time", token.auth_s, 1789999990);
    BH_CHECK_EQ("amr", token.amr.count, 1);
    BH_CHECK_EQ("groups", token.groups.count, 2);
    BH_CHECK_STR("groups", token.groups.items[1], "ops");
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

/* An hour's jump of the clock in either direction, and lists and texts at their limits. */
static void
id_token_test_limits(void **state)
{
    struct bh_id_token_rules rules = plain_rules();
    struct bh_id_token token;
    const char *good = bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER, "{" GOOD "}");
    char sub[BH_CLAIM_TEXT_MAX + 2], *text = malloc(1 << 15);
    struct bh_buf out;

    rules.when.now += 3600 * BH_NS_PER_S;
    BH_CHECK_EQ("an hour later", id_token_test_read_token(good, &rules, &token), BH_FAULT_EXPIRED);
    rules.when.now -= 7200 * BH_NS_PER_S;
    BH_CHECK_EQ("an hour before", id_token_test_read_token(good, &rules, &token), BH_FAULT_IAT_FUTURE);
    rules = plain_rules();

    memset(sub, 's', sizeof sub);
    for (int extra = 0; extra < 2; extra++) {
        snprintf(text, 1 << 15, "{" ISS AUD EXP IAT NONCE ",\"sub\":\"%.*s\"}", BH_CLAIM_TEXT_MAX + extra,
                 sub);
        BH_CHECK_EQ("long sub",
                    id_token_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER, text),
                                             &rules, &token),
                    extra ? BH_FAULT_SUB_INVALID : 0);
    }
    for (int extra = 0; extra < 2; extra++) {
        bh_buf_init_fixed(&out, text, 1 << 15);
        bh_buf_puts(&out, "{" GOOD ",\"groups\":[\"g\"");
        for (int i = 1; i < BH_ID_GROUPS_MAX + extra; i++)
            bh_buf_puts(&out, ",\"g\"");
        bh_buf_puts(&out, "]}");
        BH_CHECK_EQ(
            "groups",
            id_token_test_read_token(bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, JSON_HEADER, bh_buf_text(&out)),
                                     &rules, &token),
            extra ? BH_FAULT_GROUPS_MANY : 0);
    }
    free(text);
    BH_CHECK_DONE();
}

/* Each fault has a name and a sentence of its own. */
static void
faults(void **state)
{
    struct bh_err err, other;

    BH_CHECK_EQ("none", bh_fault_err(BH_FAULT_NONE, &err), BH_OK);
    for (enum bh_identity_fault i = 1; i < BH_FAULTS; i++) {
        BH_CHECK(bh_fault_name(i), bh_fault_err(i, &err) != BH_OK);
        for (enum bh_identity_fault k = 1; k < i; k++) {
            BH_CHECK(bh_fault_name(i), bh_fault_err(k, &other) != BH_OK);
            BH_CHECK(bh_fault_name(i), strcmp(err.msg, other.msg) != 0);
            BH_CHECK(bh_fault_name(i), strcmp(bh_fault_name(i), bh_fault_name(k)) != 0);
        }
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims),
        cmocka_unit_test(signatures),
        cmocka_unit_test(step_up_and_hashes),
        cmocka_unit_test(what_is_known),
        cmocka_unit_test(id_token_test_limits),
        cmocka_unit_test(faults),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, bh_test_keys_init, bh_test_keys_fini);
}
