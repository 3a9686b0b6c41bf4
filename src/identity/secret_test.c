#include "identity/secret.h"

#include "base/test.h"

static void
equality(void **state)
{
    BH_CHECK("same", bh_secret_equal("abc", "abc"));
    BH_CHECK("empty", bh_secret_equal("", ""));
    BH_CHECK("longer", !bh_secret_equal("abc", "abcd"));
    BH_CHECK("shorter", !bh_secret_equal("abc", "ab"));
    BH_CHECK("first", !bh_secret_equal("abc", "xbc"));
    BH_CHECK("last", !bh_secret_equal("abc", "abx"));
    BH_CHECK("case", !bh_secret_equal("abc", "abC"));
    BH_CHECK_DONE();
}

static void
texts(void **state)
{
    uint8_t bytes[BH_SECRET_BYTES] = { 0 };
    char text[BH_SECRET_TEXT];

    bh_secret_text(bytes, text);
    BH_CHECK_STR("zeros", text, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    /* RFC 7636, appendix B */
    bh_secret_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", text);
    BH_CHECK_STR("S256", text, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    /* RFC 4231, case 2 */
    bh_secret_mac("Jefe", "what do ya want for nothing?", text);
    BH_CHECK_STR("HMAC", text, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM");
    bh_secret_wipe(text, sizeof text);
    BH_CHECK_EQ("wiped", text[0], 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equality),
    cmocka_unit_test(texts),
};

BH_TEST_MAIN(tests)
