#include "audit/sealed.h"

#include "base/test.h"

#define H32 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define N24 "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define ITEM(c, h, k, n) "{\"c\":\"" c "\",\"h\":\"" h "\",\"k\":\"" k "\",\"n\":\"" n "\"}"
#define GOOD ITEM("QUJD", H32, "7", N24)

static void
reads_items(void **state)
{
    static const struct {
        const char *name, *text;
        bool good;
    } rows[] = {
        { "good", GOOD, true },
        { "largest number", ITEM("QUJD", H32, "9007199254740991", N24), true },
        { "no ciphertext", ITEM("", H32, "7", N24), false },
        { "ciphertext cut", ITEM("QUJ", H32, "7", N24), false },
        { "padding in the middle", ITEM("Q=JD", H32, "7", N24), false },
        { "padding of two", ITEM("QQ==", H32, "7", N24), true },
        { "padding of three", ITEM("Q===", H32, "7", N24), false },
        { "short commitment", ITEM("QUJD", "QUJD", "7", N24), false },
        { "long nonce", ITEM("QUJD", H32, "7", N24 "QUJD"), false },
        { "no number", ITEM("QUJD", H32, "", N24), false },
        { "number with a zero", ITEM("QUJD", H32, "07", N24), false },
        { "number too long", ITEM("QUJD", H32, "90071992547409910", N24), false },
        { "base64url", ITEM("QU-D", H32, "7", N24), false },
        { "escape", ITEM("QU\\u0041", H32, "7", N24), false },
        { "blank behind", GOOD " ", false },
        { "another member", "{\"a\":\"\",\"c\":\"QUJD\"}", false },
        { "a job", "{\"args\":[\"true\"],\"sku\":\"small\"}", false },
        { "empty", "", false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_sealed sealed = { .key = 99 };
        struct bh_slice text = { rows[i].text, strlen(rows[i].text) };

        BH_CHECK_EQ(rows[i].name, bh_sealed_read(text, &sealed), rows[i].good);
        BH_CHECK(rows[i].name, rows[i].good || sealed.key == 99);
        for (size_t cut = 0; cut < text.length; cut++)
            BH_CHECK(rows[i].name,
                     !bh_sealed_read((struct bh_slice){ text.text, cut }, &sealed) || cut + 1 == text.length);
    }
    BH_CHECK_DONE();
}

static void
reads_parts(void **state)
{
    struct bh_sealed sealed;

    assert_true(bh_sealed_read((struct bh_slice){ GOOD, strlen(GOOD) }, &sealed));
    BH_CHECK_EQ("key", sealed.key, 7);
    BH_CHECK("cipher", sealed.cipher.length == 4 && memcmp(sealed.cipher.text, "QUJD", 4) == 0);
    BH_CHECK("h", sealed.commitment.length == 44 && sealed.commitment.text[0] == 'A');
    BH_CHECK("n", sealed.nonce.length == 32 && sealed.nonce.text[0] == 'B');
    BH_CHECK_DONE();
}

static void
bounds_lists(void **state)
{
    static const struct {
        const char *name, *text;
        bool good;
    } rows[] = {
        { "one", "[" GOOD "]", true },
        { "two", "[" GOOD "," GOOD "]", true },
        { "none", "[]", false },
        { "not an array", GOOD, false },
        { "one of them bad", "[" GOOD ",{}]", false },
        { "cut", "[" GOOD ",", false },
        { "most", "[" GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "]", true },
        { "too many", "[" GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "]",
          false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].name, bh_sealed_is_list((struct bh_slice){ rows[i].text, strlen(rows[i].text) }),
                    rows[i].good);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_items),
    cmocka_unit_test(reads_parts),
    cmocka_unit_test(bounds_lists),
};
BH_TEST_MAIN(tests)
