#include "base/base64.h"

#include "base/test.h"

static void
vectors(void **state)
{
    static const struct {
        const char *bytes, *text;
        size_t length;
    } rows[] = {
        { "", "", 0 },
        { "f", "Zg", 1 },
        { "fo", "Zm8", 2 },
        { "foo", "Zm9v", 3 },
        { "foob", "Zm9vYg", 4 },
        { "\xff\xef\xbe", "_---", 3 },
        { "\x03\xec\xff\xe0\xc1", "A-z_4ME", 5 }, /* RFC 7515, appendix C */
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char memory[32], back[32];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_base64url_encode(&out, rows[i].bytes, rows[i].length);
        BH_CHECK_STR(rows[i].text, bh_buf_text(&out), rows[i].text);
        bh_buf_init_fixed(&out, back, sizeof back);
        BH_CHECK(rows[i].text, bh_base64url_decode(&out, rows[i].text, strlen(rows[i].text)));
        BH_CHECK_EQ(rows[i].text, out.length, rows[i].length);
        BH_CHECK(rows[i].text, memcmp(back, rows[i].bytes, rows[i].length) == 0);
    }
    BH_CHECK_DONE();
}

static void
base64url_test_refused(void **state)
{
    static const char *const rows[] = {
        "Z",          /* one character is no byte */
        "Zg==",       /* padding */
        "Zg=",  "Zh", /* stray last bits */
        "Zm9",        /* as well */
        "Z g",  "Zm9v\n", "+/+/", "Zm9vZ", "Zm\x80v",
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char memory[32] = "kept";
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        out.length = 4;
        BH_CHECK(rows[i], !bh_base64url_decode(&out, rows[i], strlen(rows[i])));
        BH_CHECK_EQ(rows[i], out.length, 4);
        BH_CHECK(rows[i], !out.overflow);
    }
    BH_CHECK_DONE();
}

static void
no_space(void **state)
{
    char memory[2];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    BH_CHECK("three bytes", !bh_base64url_decode(&out, "Zm9v", 4));
    BH_CHECK("overflow", out.overflow);
    BH_CHECK_EQ("length", out.length, 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(vectors),
    cmocka_unit_test(base64url_test_refused),
    cmocka_unit_test(no_space),
};

BH_TEST_MAIN(tests)
