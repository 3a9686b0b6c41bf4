#include "identity/account.h"

#include "base/test.h"

static void
account_test_spellings(void **state)
{
    static const struct {
        const char *text, *key;
        bool is_name;
    } rows[] = {
        { "alice", "alice", true },
        { "Alice", "alice", true },
        { " ALICE\t", "alice", true },
        { "alice ", "alice", true },
        { "alice\xcc\x81", "alice", false },     /* a combining acute behind the e */
        { "alic\xc3\xa9", "alice", false },      /* the same composed */
        { "\xc3\x80lice", "alice", false },      /* A with a grave */
        { "\xef\xbc\xa1lice", "alice", false },  /* a wide A */
        { "al\xe2\x80\x8bice", "alice", false }, /* a blank of no width */
        { "alice\xc2\xa0", "alice", false },     /* a blank that does not break */
        { "\xe3\x80\x80"
          "alice",
          "alice", false }, /* a wide blank */
        { "\xe2\x80\xae"
          "alice",
          "alice", false },                     /* writing from the right */
        { "al\xc2\xadice", "alice", false },    /* a soft hyphen */
        { "\xe1\xba\xa0lice", "alice", false }, /* A with a dot below */
        { "al ice", "al ice", false },
        { "alice@Example.ORG", "alice@example.org", true },
        { "al\xff"
          "ice",
          "al\xef\xbf\xbd"
          "ice",
          false },
        { "\xd0\xb0lice", "\xd0\xb0lice", false }, /* a Cyrillic a: no name, so no account */
        { "", "", false },
        { "  ", "", false },
        { "a\nb", "a b", false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char memory[64], name[BH_ACCOUNT_MAX + 1] = "";
        struct bh_buf key;

        bh_buf_init_fixed(&key, memory, sizeof memory);
        bh_account_key(rows[i].text, &key);
        BH_CHECK_STR(rows[i].text, bh_buf_text(&key), rows[i].key);
        BH_CHECK_EQ(rows[i].text, bh_account_name(rows[i].text, name), rows[i].is_name);
        BH_CHECK_STR(rows[i].text, name, rows[i].is_name ? rows[i].key : "");
    }
    BH_CHECK_DONE();
}

static void
lengths(void **state)
{
    char text[BH_ACCOUNT_MAX + 2] = "", name[BH_ACCOUNT_MAX + 1];

    memset(text, 'a', BH_ACCOUNT_MAX);
    BH_CHECK("longest", bh_account_name(text, name));
    text[BH_ACCOUNT_MAX] = 'a';
    BH_CHECK("longer", !bh_account_name(text, name));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(account_test_spellings),
    cmocka_unit_test(lengths),
};

BH_TEST_MAIN(tests)
