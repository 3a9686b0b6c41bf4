#include "audit/canonical.h"

#include "base/test.h"

static void
accepts(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "0",
        "-1",
        "9007199254740991",
        "-9007199254740991",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a\\\"\\\\\\b\\f\\n\\r\\t/\"",
        "\"\\u0001\\u001f\\u000b\"",
        "\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x84\"",
        "{\"a\":1,\"aa\":2,\"b\":[{},[]]}",
        "[1,\"2\",null]",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        BH_CHECK_EQ(texts[i], bh_canonical_step(texts[i], strlen(texts[i])), strlen(texts[i]));
    BH_CHECK_EQ("stops behind the value", bh_canonical_step("{\"a\":1},", 8), 7);
    BH_CHECK_DONE();
}

static void
canonical_refuses(void **state)
{
    static const char *const texts[] = {
        "",
        " 1",
        "{ }",
        "{\"a\": 1}",
        "{\"b\":1,\"a\":2}",
        "{\"a\":1,\"a\":2}",
        "[1,]",
        "{,}",
        "{\"aa\":1,\"a\":2}",
        "{\"a\"}",
        "{a:1}",
        "-0",
        "01",
        "-",
        "9007199254740992",
        "18446744073709551617",
        "tru",
        "nul",
        "\"a",
        "\"\\u0041\"",
        "\"\\u000a\"",
        "\"\\u0000\"",
        "\"\\u001F\"",
        "\"\\/\"",
        "\"\x01\"",
        "\"\xff\"",
        "\"\xc3\"",
        "{\"\\n\":1}",
        "{\"\xc3\xbc\":1}",
        "[",
        "{\"a\":",
        "\"\\",
        "\"\\u00",
    };
    char deep[80];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        BH_CHECK_EQ(texts[i], bh_canonical_step(texts[i], strlen(texts[i])), 0);
    BH_CHECK_EQ("fraction stops early", bh_canonical_step("1.5", 3), 1);
    memset(deep, '[', 40);
    memset(deep + 40, ']', 40);
    BH_CHECK_EQ("too deep", bh_canonical_step(deep, sizeof deep), 0);
    BH_CHECK_EQ("deep enough", bh_canonical_step(deep + 40 - 32, 64), 64);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(accepts),
    cmocka_unit_test(canonical_refuses),
};
BH_TEST_MAIN(tests)
