#include "identity/jwk.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/test.h"
#include "identity/fixture_test.h"

#define RSA_N                                                                                                \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEz"                   \
    "P1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf6"                   \
    "3kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5Zw"                   \
    "Kh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRW"                   \
    "yuXpoQ"
#define RSA_KEY "{\"kty\":\"RSA\",\"n\":\"" RSA_N "\",\"e\":\"AQAB\""
#define EC_X "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
#define EC_Y "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
#define EC_KEY "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_X "\",\"y\":\"" EC_Y "\""
#define ED_KEY                                                                                               \
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_"                                            \
    "7TyWQHOg7hcvPapiMlrwIaaPcHURo\""

static struct bh_jwks jwks;

static const struct {
    const char *name, *text;
    enum bh_identity_fault fault;
    uint32_t count, ignored;
} set_rows[] = {
    { "three types", "{\"keys\":[" RSA_KEY "}," EC_KEY "}," ED_KEY "}]}", 0, 3, 0 },
    { "unknown members", "{\"x\":{},\"keys\":[" RSA_KEY ",\"x5c\":[\"a\"],\"z\":null}]}", 0, 1, 0 },
    { "same kid, other type", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}," EC_KEY ",\"kid\":\"a\"}]}", 0, 2, 0 },
    { "two without kid", "{\"keys\":[" RSA_KEY "}," RSA_KEY "}]}", 0, 2, 0 },
    { "for encryption", "{\"keys\":[" RSA_KEY ",\"use\":\"enc\"}," EC_KEY "}]}", 0, 1, 1 },
    { "key_ops",
      "{\"keys\":[" RSA_KEY ",\"key_ops\":[\"encrypt\"]}," EC_KEY ",\"key_ops\":[\"sign\",\"verify\"]}]}", 0,
      1, 1 },
    { "another algorithm", "{\"keys\":[" RSA_KEY ",\"alg\":\"RS512\"}," EC_KEY "}]}", 0, 1, 1 },
    { "shared secret", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}," EC_KEY "}]}", 0, 1, 1 },
    { "another curve", "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-521\"}," EC_KEY "}]}", 0, 1, 1 },
    { "no JSON", "keys", BH_FAULT_JWKS_JSON, 0, 0 },
    { "a member twice", "{\"keys\":[],\"keys\":[" EC_KEY "}]}", BH_FAULT_JWKS_JSON, 0, 0 },
    { "a key's member twice", "{\"keys\":[" EC_KEY ",\"kty\":\"EC\"}]}", BH_FAULT_JWKS_JSON, 0, 0 },
    { "no list", "{\"keys\":{}}", BH_FAULT_JWKS_JSON, 0, 0 },
    { "no keys", "{}", BH_FAULT_JWKS_JSON, 0, 0 },
    { "a list alone", "[" EC_KEY "}]", BH_FAULT_JWKS_JSON, 0, 0 },
    { "empty", "{\"keys\":[]}", BH_FAULT_JWKS_EMPTY, 0, 0 },
    { "only others", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}", BH_FAULT_JWKS_EMPTY, 0, 0 },
    { "no kty", "{\"keys\":[{\"n\":\"AQ\"}]}", BH_FAULT_JWKS_KEY, 0, 0 },
    { "kid is a number", "{\"keys\":[" EC_KEY ",\"kid\":1}]}", BH_FAULT_JWKS_KEY, 0, 0 },
    { "a key is a text", "{\"keys\":[\"RSA\"]}", BH_FAULT_JWKS_KEY, 0, 0 },
    { "no exponent", "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"" RSA_N "\"}]}", BH_FAULT_JWKS_KEY, 0, 0 },
    { "exponent 1", "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"" RSA_N "\",\"e\":\"AQ\"}]}", BH_FAULT_JWKS_KEY, 0,
      0 },
    { "even exponent", "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"" RSA_N "\",\"e\":\"AQAA\"}]}", BH_FAULT_JWKS_KEY,
      0, 0 },
    { "zeros before", "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AAAA" RSA_N "\",\"e\":\"AQAB\"}]}",
      BH_FAULT_JWKS_KEY, 0, 0 },
    { "padding", "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"" RSA_N "==\",\"e\":\"AQAB\"}]}", BH_FAULT_JWKS_KEY, 0,
      0 },
    { "off the curve",
      "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_X "\",\"y\":\"" EC_X "\"}]}",
      BH_FAULT_JWKS_KEY, 0, 0 },
    { "short coordinate", "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_X "\",\"y\":\"AQAB\"}]}",
      BH_FAULT_JWKS_KEY, 0, 0 },
    { "point of another curve",
      "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"" EC_X "\",\"y\":\"" EC_Y "\"}]}",
      BH_FAULT_JWKS_KEY, 0, 0 },
    { "short Ed25519", "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AQAB\"}]}", BH_FAULT_JWKS_KEY,
      0, 0 },
    { "private part", "{\"keys\":[" EC_KEY ",\"d\":\"AQAB\"}]}", BH_FAULT_JWKS_PRIVATE, 0, 0 },
    { "twice", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}," RSA_KEY ",\"kid\":\"a\"}]}", BH_FAULT_JWKS_DUPLICATE,
      0, 0 },
};

static void
sets(void **state)
{
    for (size_t i = 0; i < BH_COUNT(set_rows); i++) {
        jwks.count = 77;
        BH_CHECK_EQ(set_rows[i].name, bh_jwks_parse(set_rows[i].text, strlen(set_rows[i].text), &jwks),
                    set_rows[i].fault);
        BH_CHECK_EQ(set_rows[i].name, jwks.count, set_rows[i].fault ? 77 : set_rows[i].count);
        if (!set_rows[i].fault)
            BH_CHECK_EQ(set_rows[i].name, jwks.ignored, set_rows[i].ignored);
    }
    BH_CHECK_DONE();
}

static void
jwk_test_limits(void **state)
{
    char kid[BH_JWK_KID_MAX + 2], text[700];
    struct bh_buf out;

    bh_buf_init(&out, 1 << 20);
    bh_buf_puts(&out, "{\"keys\":[" EC_KEY "}");
    for (int i = 1; i < BH_JWKS_KEYS_MAX; i++)
        bh_buf_puts(&out, ",{\"kty\":\"oct\"}");
    bh_buf_puts(&out, "]}");
    BH_CHECK_EQ("32 keys", bh_jwks_parse(out.bytes, out.length, &jwks), 0);
    out.length -= 2;
    bh_buf_puts(&out, ",{\"kty\":\"oct\"}]}");
    BH_CHECK_EQ("33 keys", bh_jwks_parse(out.bytes, out.length, &jwks), BH_FAULT_JWKS_MANY);
    bh_buf_clear(&out);
    bh_buf_puts(&out, "{\"keys\":[" EC_KEY "}]}");
    while (out.length < BH_JWKS_BYTES_MAX)
        bh_buf_putc(&out, ' ');
    BH_CHECK_EQ("256 KiB", bh_jwks_parse(out.bytes, out.length, &jwks), 0);
    bh_buf_putc(&out, ' ');
    BH_CHECK_EQ("and one", bh_jwks_parse(out.bytes, out.length, &jwks), BH_FAULT_JWKS_JSON);
    bh_buf_fini(&out);

    memset(kid, 'k', sizeof kid);
    for (int extra = 0; extra < 2; extra++) {
        snprintf(text, sizeof text, "{\"keys\":[" EC_KEY ",\"kid\":\"%.*s\"}]}", BH_JWK_KID_MAX + extra, kid);
        BH_CHECK_EQ("long kid", bh_jwks_parse(text, strlen(text), &jwks), extra ? BH_FAULT_JWKS_KEY : 0);
    }
    BH_CHECK_DONE();
}

static void
weak_rsa(void **state)
{
    char text[2048];

    snprintf(text, sizeof text, "{\"keys\":[" EC_KEY "},%s]}", bh_test_jwk(BH_TEST_RSA_SHORT, ""));
    BH_CHECK_EQ("1024 bits", bh_jwks_parse(text, strlen(text), &jwks), 0);
    BH_CHECK_EQ("1024 bits", jwks.count, 1);
    BH_CHECK_EQ("1024 bits", jwks.ignored, 1);
    BH_CHECK_DONE();
}

static void
finding(void **state)
{
    static const struct {
        const char *name, *set, *kid;
        enum bh_jws_alg alg;
        enum bh_identity_fault fault;
        int index;
    } rows[] = {
        { "by id", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}," EC_KEY ",\"kid\":\"b\"}]}", "b", BH_JWS_ES256, 0,
          1 },
        { "same id, by type", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}," EC_KEY ",\"kid\":\"a\"}]}", "a",
          BH_JWS_ES256, 0, 1 },
        { "no id, one key", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}]}", "", BH_JWS_RS256, 0, 0 },
        { "no id, one of the type", "{\"keys\":[" RSA_KEY "}," EC_KEY "}]}", "", BH_JWS_ES256, 0, 1 },
        { "no id, two keys", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}," RSA_KEY ",\"kid\":\"b\"}]}", "",
          BH_JWS_RS256, BH_FAULT_KEY_AMBIGUOUS, 0 },
        { "unknown id", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}]}", "../../a", BH_JWS_RS256,
          BH_FAULT_KEY_UNKNOWN, 0 },
        { "case matters", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}]}", "A", BH_JWS_RS256, BH_FAULT_KEY_UNKNOWN,
          0 },
        { "id, key without", "{\"keys\":[" RSA_KEY "}]}", "a", BH_JWS_RS256, BH_FAULT_KEY_UNKNOWN, 0 },
        { "another type", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\"}]}", "a", BH_JWS_ES256, BH_FAULT_KEY_MISMATCH,
          0 },
        { "another alg", "{\"keys\":[" RSA_KEY ",\"kid\":\"a\",\"alg\":\"PS256\"}]}", "a", BH_JWS_RS256,
          BH_FAULT_KEY_MISMATCH, 0 },
        { "no id, none fits", "{\"keys\":[" RSA_KEY "}]}", "", BH_JWS_ES384, BH_FAULT_KEY_UNKNOWN, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const struct bh_jwk *key = NULL;

        BH_CHECK_EQ(rows[i].name, bh_jwks_parse(rows[i].set, strlen(rows[i].set), &jwks), 0);
        BH_CHECK_EQ(rows[i].name, bh_jwks_find(&jwks, rows[i].alg, rows[i].kid, &key), rows[i].fault);
        BH_CHECK(rows[i].name, rows[i].fault ? !key : key == &jwks.keys[rows[i].index]);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets),
        cmocka_unit_test(jwk_test_limits),
        cmocka_unit_test(weak_rsa),
        cmocka_unit_test(finding),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, bh_test_keys_init, bh_test_keys_fini);
}
