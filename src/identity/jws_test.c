#include "identity/jws.h"

#include <stdlib.h>

#include "base/test.h"
#include "identity/fixture_test.h"
#include "identity/signature.h"

#define JOE                                                                                                  \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb2"                     \
    "90Ijp0cnVlfQ"

static char payload_memory[BH_JWS_BYTES_MAX];
static struct bh_jwks jwks;

/* Parse, find the key, verify, in the way that callers do. */
static enum bh_identity_fault
open_token(const char *token, const struct bh_jwks *set, struct bh_buf *payload)
{
    struct bh_jws_trust trust = { set, BH_JWS_ALL };
    struct bh_jws jws;

    bh_buf_init_fixed(payload, payload_memory, sizeof payload_memory);
    return bh_jws_read(token, strlen(token), &trust, &jws, payload);
}

static void
jws_test_published(void **state)
{
    static const struct {
        const char *name, *key, *token, *payload;
    } rows[] = {
        { "RFC 7515 A.2, RS256",
          "{\"keys\":[{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\""
          "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-"
          "4qPCJrcS2mJPM"
          "EzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_"
          "7OMg0LOL-"
          "bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-"
          "UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3"
          "qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_"
          "h9iaGNj8q2ethFkMLs91kzk2PAcDTW9g"
          "b54h4FRWyuXpoQ\"}]}",
          "eyJhbGciOiJSUzI1NiJ9." JOE ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__"
          "dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5"
          "YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_"
          "nZLgrnbyTyWzO75vRK5h6"
          "xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-"
          "eOkHWEsqtFZESc"
          "6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igc"
          "N_"
          "IoypGlUPQGe77Rw",
          "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n "
          "\"http://example.com/is_root\":true}" },
        { "RFC 7515 A.3, ES256",
          "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
          "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
          "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}",
          "eyJhbGciOiJFUzI1NiJ9." JOE ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-"
          "F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg"
          "6NU1Q",
          "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n "
          "\"http://example.com/is_root\":true}" },
        { "RFC 8037 A.4, EdDSA",
          "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
          "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}",
          "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_"
          "MGCjP0JzlnLWG1PP"
          "Ot7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
          "Example of Ed25519 signing" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_buf payload;

        BH_CHECK_EQ(rows[i].name, bh_jwks_parse(rows[i].key, strlen(rows[i].key), &jwks), 0);
        BH_CHECK_EQ(rows[i].name, open_token(rows[i].token, &jwks, &payload), 0);
        BH_CHECK_STR(rows[i].name, bh_buf_text(&payload), rows[i].payload);
    }
    BH_CHECK_DONE();
}

static const struct {
    enum bh_test_key key;
    enum bh_jws_alg alg;
    const char *header;
} algorithms[] = {
    { BH_TEST_RSA, BH_JWS_RS256, "{\"alg\":\"RS256\",\"kid\":\"rsa\"}" },
    { BH_TEST_RSA, BH_JWS_PS256, "{\"alg\":\"PS256\",\"kid\":\"rsa\"}" },
    { BH_TEST_P256, BH_JWS_ES256, "{\"alg\":\"ES256\"}" },
    { BH_TEST_P384, BH_JWS_ES384, "{\"alg\":\"ES384\",\"kid\":\"p384\",\"typ\":\"JWT\"}" },
    { BH_TEST_ED25519, BH_JWS_EDDSA, "{\"alg\":\"EdDSA\"}" },
};

static void
every_algorithm(void **state)
{
    struct bh_buf payload;

    for (size_t i = 0; i < BH_COUNT(algorithms); i++) {
        const char *token = bh_test_sign(algorithms[i].key, algorithms[i].alg, algorithms[i].header, "{}");

        BH_CHECK_EQ(algorithms[i].header, open_token(token, bh_test_jwks(), &payload), 0);
        BH_CHECK_STR(algorithms[i].header, bh_buf_text(&payload), "{}");
    }
    BH_CHECK_DONE();
}

/* No token with one character changed is accepted, whatever the algorithm. */
static void
every_change(void **state)
{
    struct bh_buf payload;
    char token[1024];

    for (size_t i = 0; i < BH_COUNT(algorithms); i++) {
        snprintf(token, sizeof token, "%s",
                 bh_test_sign(algorithms[i].key, algorithms[i].alg, algorithms[i].header, "{\"a\":1}"));
        for (size_t at = 0; at < strlen(token); at++) {
            char was = token[at];

            token[at] = was == 'A' ? 'B' : 'A';
            BH_CHECK(algorithms[i].header, open_token(token, bh_test_jwks(), &payload) != 0);
            BH_CHECK_EQ(algorithms[i].header, payload.length, 0);
            token[at] = was;
        }
    }
    BH_CHECK_DONE();
}

static void
jws_test_headers(void **state)
{
    static const struct {
        const char *name, *header;
        enum bh_identity_fault fault;
    } rows[] = {
        { "good", "{\"alg\":\"RS256\",\"kid\":\"rsa\"}", 0 },
        { "typ", "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"typ\":\"JWT\"}", 0 },
        { "key hints are ignored",
          "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"jku\":\"https://evil/\",\"x5u\":\"https://"
          "evil/\","
          "\"jwk\":{\"kty\":\"oct\",\"k\":\"AA\"},\"x5c\":[\"AA\"]}",
          0 },
        { "none", "{\"alg\":\"none\"}", BH_FAULT_ALG_NONE },
        { "None", "{\"alg\":\"nOnE\"}", BH_FAULT_ALG_NONE },
        { "HS256", "{\"alg\":\"HS256\"}", BH_FAULT_ALG_HMAC },
        { "hs512", "{\"alg\":\"hs512\"}", BH_FAULT_ALG_HMAC },
        { "RS512", "{\"alg\":\"RS512\"}", BH_FAULT_ALG_UNKNOWN },
        { "case", "{\"alg\":\"rs256\"}", BH_FAULT_ALG_UNKNOWN },
        { "an encryption", "{\"alg\":\"RSA-OAEP\",\"enc\":\"A128GCM\"}", BH_FAULT_ALG_UNKNOWN },
        { "no alg", "{\"kid\":\"rsa\"}", BH_FAULT_ALG_MISSING },
        { "alg a number", "{\"alg\":256}", BH_FAULT_ALG_MISSING },
        { "alg a list", "{\"alg\":[\"RS256\"]}", BH_FAULT_ALG_MISSING },
        { "alg twice", "{\"alg\":\"none\",\"alg\":\"RS256\"}", BH_FAULT_HEADER_JSON },
        { "no object", "[\"RS256\"]", BH_FAULT_HEADER_JSON },
        { "no JSON", "RS256", BH_FAULT_HEADER_JSON },
        { "empty", "", BH_FAULT_TOKEN_FORM },
        { "crit", "{\"alg\":\"RS256\",\"crit\":[\"exp\"],\"exp\":1}", BH_FAULT_HEADER_CRIT },
        { "empty crit", "{\"alg\":\"RS256\",\"crit\":[]}", BH_FAULT_HEADER_CRIT },
        { "b64", "{\"alg\":\"RS256\",\"b64\":false}", BH_FAULT_HEADER_B64 },
        { "kid a number", "{\"alg\":\"RS256\",\"kid\":1}", BH_FAULT_KID_INVALID },
        { "kid empty", "{\"alg\":\"RS256\",\"kid\":\"\"}", BH_FAULT_KID_INVALID },
        { "kid a path", "{\"alg\":\"RS256\",\"kid\":\"../../../dev/null\"}", BH_FAULT_KEY_UNKNOWN },
        { "kid of another", "{\"alg\":\"RS256\",\"kid\":\"rsa-other\"}", BH_FAULT_SIGNATURE },
        { "kid of another type", "{\"alg\":\"RS256\",\"kid\":\"p256\"}", BH_FAULT_KEY_MISMATCH },
        { "no kid, two keys", "{\"alg\":\"RS256\"}", BH_FAULT_KEY_AMBIGUOUS },
        { "typ a number", "{\"alg\":\"RS256\",\"typ\":1}", BH_FAULT_HEADER_TYPE },
        { "signed as RS256, called PS256", "{\"alg\":\"PS256\",\"kid\":\"rsa\"}", BH_FAULT_SIGNATURE },
    };
    struct bh_buf payload;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const char *token = bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, rows[i].header, "{}");

        BH_CHECK_EQ(rows[i].name, open_token(token, bh_test_jwks(), &payload), rows[i].fault);
    }
    BH_CHECK_DONE();
}

static void
jws_test_forms(void **state)
{
    static const struct {
        const char *name, *token;
        enum bh_identity_fault fault;
    } rows[] = {
        { "empty", "", BH_FAULT_TOKEN_SIZE },
        { "no dot", "e30", BH_FAULT_TOKEN_FORM },
        { "one dot", "e30.e30", BH_FAULT_TOKEN_FORM },
        { "three dots", "e30.e30.e30.e30", BH_FAULT_TOKEN_FORM },
        { "five parts, encrypted", "e30.a.b.c.d", BH_FAULT_TOKEN_FORM },
        { "no payload", "eyJhbGciOiJSUzI1NiJ9..AAAA", BH_FAULT_TOKEN_FORM },
        { "no header", ".e30.AAAA", BH_FAULT_TOKEN_FORM },
        { "padding", "e30=.e30.AAAA", BH_FAULT_TOKEN_ENCODING },
        { "JSON form", "{\"payload\":\"e30\",\"signatures\":[]}", BH_FAULT_TOKEN_FORM },
        { "blank before", " e30.e30.AAAA", BH_FAULT_TOKEN_ENCODING },
        { "no signature", "eyJhbGciOiJFZERTQSJ9.e30.", BH_FAULT_SIGNATURE },
        { "short signature", "eyJhbGciOiJFUzI1NiJ9.e30.AAAA", BH_FAULT_SIGNATURE },
        { "broken signature", "eyJhbGciOiJFUzI1NiJ9.e30.A+AA", BH_FAULT_TOKEN_ENCODING },
        { "zero signature",
          "eyJhbGciOiJFUzI1NiJ9.e30."
          "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
          "AAAAAAAAAAAAAAAAAAAAAAAAAA",
          BH_FAULT_SIGNATURE },
    };
    struct bh_buf payload;

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].name, open_token(rows[i].token, bh_test_jwks(), &payload), rows[i].fault);
    BH_CHECK_DONE();
}

/* Key confusion: a signature made with public values only. */
static void
confusion(void **state)
{
    struct bh_buf payload;

    BH_CHECK_EQ(
        "HS256 with the RSA public key",
        open_token(bh_test_sign_hmac("{\"alg\":\"HS256\",\"kid\":\"rsa\"}", "{}"), bh_test_jwks(), &payload),
        BH_FAULT_ALG_HMAC);
    BH_CHECK_EQ(
        "the same, called RS256",
        open_token(bh_test_sign_hmac("{\"alg\":\"RS256\",\"kid\":\"rsa\"}", "{}"), bh_test_jwks(), &payload),
        BH_FAULT_SIGNATURE);
    BH_CHECK_EQ(
        "ES256 of a P-384 key",
        open_token(bh_test_sign(BH_TEST_P384, BH_JWS_ES384, "{\"alg\":\"ES256\",\"kid\":\"p384\"}", "{}"),
                   bh_test_jwks(), &payload),
        BH_FAULT_KEY_MISMATCH);
    BH_CHECK_EQ(
        "no signature at all",
        open_token(bh_test_sign(BH_TEST_RSA, BH_JWS_ALGS, "{\"alg\":\"RS256\",\"kid\":\"rsa\"}", "{}"),
                   bh_test_jwks(), &payload),
        BH_FAULT_SIGNATURE);
    BH_CHECK_DONE();
}

/* RFC 7518: the salt of PS256 has the hash's length, ECDSA signatures exactly two numbers.
 */
static void
signature_lengths(void **state)
{
    static const int salts[] = { 32, 0, 20, 64 };
    struct bh_buf payload;
    char token[1024];

    for (size_t i = 0; i < BH_COUNT(salts); i++)
        BH_CHECK_EQ("salt",
                    open_token(bh_test_sign_pss("{\"alg\":\"PS256\",\"kid\":\"rsa\"}", "{}", salts[i]),
                               bh_test_jwks(), &payload),
                    salts[i] == 32 ? 0 : BH_FAULT_SIGNATURE);
    for (int extra = 0; extra < 2; extra++) {
        /* 96 bytes are 128 characters; "AAA" behind them is two bytes more */
        snprintf(token, sizeof token, "%s%s",
                 bh_test_sign(BH_TEST_P384, BH_JWS_ES384, "{\"alg\":\"ES384\",\"kid\":\"p384\"}", "{}"),
                 extra ? "AAA" : "");
        BH_CHECK_EQ("ES384", open_token(token, bh_test_jwks(), &payload), extra ? BH_FAULT_SIGNATURE : 0);
    }
    BH_CHECK_DONE();
}

static void
registration(void **state)
{
    const char *token = bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, "{\"alg\":\"RS256\",\"kid\":\"rsa\"}", "{}");
    struct bh_jws jws = { .text = "untouched" };

    BH_CHECK_EQ("only ES256", bh_jws_parse(token, strlen(token), BH_JWS_BIT(BH_JWS_ES256), &jws),
                BH_FAULT_ALG_REFUSED);
    BH_CHECK_STR("untouched", jws.text, "untouched");
    BH_CHECK_EQ("nothing", bh_jws_parse(token, strlen(token), 0, &jws), BH_FAULT_ALG_REFUSED);
    BH_CHECK_EQ("this", bh_jws_parse(token, strlen(token), BH_JWS_BIT(BH_JWS_RS256), &jws), 0);
    BH_CHECK_DONE();
}

static void
sizes(void **state)
{
    char *text = malloc(1 << 20);
    struct bh_buf payload;

    memset(text, 'a', (1 << 20) - 1);
    text[(1 << 20) - 1] = '\0';
    BH_CHECK_EQ("a claim of 1 MiB",
                open_token(bh_test_sign(BH_TEST_ED25519, BH_JWS_EDDSA, "{\"alg\":\"EdDSA\"}", text),
                           bh_test_jwks(), &payload),
                BH_FAULT_TOKEN_SIZE);
    memcpy(text, "{\"alg\":\"EdDSA\",\"x\":\"", 20);
    memcpy(text + BH_JWS_HEADER_MAX - 2, "\"}", 3);
    BH_CHECK_EQ("a header of 4 KiB",
                open_token(bh_test_sign(BH_TEST_ED25519, BH_JWS_EDDSA, text, "{}"), bh_test_jwks(), &payload),
                0);
    memcpy(text + BH_JWS_HEADER_MAX - 2, "a\"}", 4);
    BH_CHECK_EQ("and one",
                open_token(bh_test_sign(BH_TEST_ED25519, BH_JWS_EDDSA, text, "{}"), bh_test_jwks(), &payload),
                BH_FAULT_HEADER_SIZE);
    free(text);
    BH_CHECK_DONE();
}

/* OpenID Connect Core 1.0, appendix A.3 and A.4. */
static void
half_hashes(void **state)
{
    char hash[BH_HALF_HASH_MAX];

    bh_signature_half_hash(BH_JWS_RS256, "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y", hash);
    BH_CHECK_STR("at_hash", hash, "77QmUPtjPfzWtF2AnpK9RQ");
    bh_signature_half_hash(BH_JWS_RS256, "Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk", hash);
    BH_CHECK_STR("c_hash", hash, "LDktKdoQak3Pk0cnXxCltA");
    bh_signature_half_hash(BH_JWS_ES384, "", hash);
    BH_CHECK_EQ("SHA-384", strlen(hash), 32);
    bh_signature_half_hash(BH_JWS_EDDSA, "", hash);
    BH_CHECK_EQ("SHA-512", strlen(hash), 43);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(jws_test_published),
        cmocka_unit_test(every_algorithm),
        cmocka_unit_test(every_change),
        cmocka_unit_test(jws_test_headers),
        cmocka_unit_test(jws_test_forms),
        cmocka_unit_test(confusion),
        cmocka_unit_test(registration),
        cmocka_unit_test(signature_lengths),
        cmocka_unit_test(sizes),
        cmocka_unit_test(half_hashes),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, bh_test_keys_init, bh_test_keys_fini);
}
