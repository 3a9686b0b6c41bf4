#include "identity/passkey.h"

#include "base/test.h"

#define KEY32 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
#define STORED                                                                                               \
    "{\"aaguid\":\"00000000000000000000000000000000\",\"alg\":\"EdDSA\",\"counter\":5,"                      \
    "\"created\":\"1790000000000000001\",\"flags\":29,\"id\":\"_-8\",\"key\":\"" KEY32                       \
    "\",\"name\":\"Ada's phone\"}"

static enum bh_identity_fault
passkey_test_decode(const char *text, struct bh_passkey *ret_passkey)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 16);

    return bh_passkey_decode(text, strlen(text), arena, ret_passkey);
}

static void
passkey_test_stored(void **state)
{
    struct bh_passkey passkey;
    struct bh_buf out;
    char text[BH_PASSKEY_JSON_MAX];

    BH_CHECK("ordered", bh_fields_ordered(&bh_passkey_fields));
    BH_CHECK_EQ("with a name that is not given any more",
                passkey_test_decode(
                    "{\"aaguid\":\"00000000000000000000000000000000\",\"alg\":\"EdDSA\",\"counter\":5,"
                    "\"created\":\"1790000000000000001\",\"flags\":29,\"id\":\"_-8\",\"key\":\"" KEY32
                    "\",\"name\":\"Ada\xef\xb8\x8f\"}",
                    &passkey),
                BH_FAULT_NONE);
    BH_CHECK_EQ("read", passkey_test_decode(STORED, &passkey), BH_FAULT_NONE);
    BH_CHECK_EQ("counter", passkey.counter, 5);
    BH_CHECK_EQ("flags", passkey.flags, 0x1d);
    BH_CHECK_EQ("alg", passkey.alg, BH_PASSKEY_EDDSA);
    bh_buf_init_fixed(&out, text, sizeof text);
    bh_passkey_encode(&out, &passkey);
    BH_CHECK_STR("as it was", bh_buf_text(&out), STORED);
    BH_CHECK_DONE();
}

static void
largest(void **state)
{
    struct bh_passkey passkey = { .alg = BH_PASSKEY_RS256,
                                  .counter = UINT32_MAX,
                                  .flags = 0xff,
                                  .created = UINT64_MAX,
                                  .used = UINT64_MAX },
                      again;
    struct bh_buf out;
    char text[BH_PASSKEY_JSON_MAX];

    memset(passkey.id, 'A', BH_PASSKEY_ID_TEXT - 1);
    memset(passkey.key, 'A', 346);
    memset(passkey.name, '"', BH_PASSKEY_NAME_MAX);
    memset(passkey.transports, 'a', BH_PASSKEY_TRANSPORTS_MAX);
    bh_buf_init_fixed(&out, text, sizeof text);
    bh_passkey_encode(&out, &passkey);
    BH_CHECK("fits", bh_buf_text(&out));
    BH_CHECK_EQ("read", passkey_test_decode(bh_buf_text(&out), &again), BH_FAULT_NONE);
    BH_CHECK("same", memcmp(&passkey, &again, sizeof again) == 0);
    BH_CHECK_DONE();
}

/* Each row is STORED with one thing changed. */
static void
passkey_test_damaged(void **state)
{
    static const struct {
        const char *name, *from, *to;
    } rows[] = {
        { "no JSON", "{", "" },
        { "unknown member", "\"alg\"", "\"x\":1,\"alg\"" },
        { "member missing", "\"counter\":5,", "" },
        { "unknown algorithm", "EdDSA", "none" },
        { "key of another algorithm", "EdDSA", "ES256" },
        { "key too short", KEY32, "AAEC" },
        { "key no base64url", KEY32, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+" },
        { "no id", "_-8", "" },
        { "id with stray bits", "_-8", "_-9" },
        { "flags of more than a byte", "29", "256" },
        { "no name", "Ada's phone", "" },
        { "a name with a line end", "Ada's", "Ada\\n" },
        { "transports that are none", "\"name\":\"Ada's phone\"", "\"name\":\"a\",\"transports\":\"USB\"" },
        { "counter below zero", "\"counter\":5", "\"counter\":-1" },
    };
    struct bh_passkey passkey;
    char text[1024];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const char *at = strstr(STORED, rows[i].from);

        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - STORED), STORED, rows[i].to,
                 at + strlen(rows[i].from));
        BH_CHECK_EQ(rows[i].name, passkey_test_decode(text, &passkey), BH_FAULT_PASSKEY_STORED);
    }
    BH_CHECK_DONE();
}

static void
passkey_test_names(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } rows[] = {
        { "x", true },
        { "Schl\xc3\xbcssel \xf0\x9f\x94\x91", true },
        { "0123456789012345678901234567890123456789012345678901234567890123", true },
        { "01234567890123456789012345678901234567890123456789012345678901234", false },
        { "", false },
        { "a\tb", false },
        { "a\x7f", false },
        { "a\xff", false },
        { "cut off \xc3", false },
        { "turned \xe2\x80\xae", false },
        { "isolated \xe2\x81\xa6", false },
        { "hidden \xe2\x80\x8b", false },
        { "a variant \xef\xb8\x8f", false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].name, bh_passkey_name_check(rows[i].name), rows[i].good);
    BH_CHECK_DONE();
}

static void
transports(void **state)
{
    static const struct {
        const char *text;
        bool good;
        /* clang-format off */
    } rows[] = {
        { "", true },          { "usb", true },   { "usb,smart-card", true },
        { "usb,", false },     { ",usb", false }, { "usb,,nfc", false },
        { "usb, nfc", false }, { "USB", false },  { "u\"b", false },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].text, bh_passkey_transports_check(rows[i].text), rows[i].good);
    BH_CHECK_DONE();
}

static void
passkey_test_found(void **state)
{
    static const struct bh_passkey items[] = { { .id = "aaaa" }, { .id = "aaab" } };
    static const struct bh_passkeys passkeys = { items, 2 };

    BH_CHECK("second", bh_passkeys_find(&passkeys, "aaab") == &items[1]);
    BH_CHECK("none", !bh_passkeys_find(&passkeys, "aaa"));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(passkey_test_stored),  cmocka_unit_test(largest),
    cmocka_unit_test(passkey_test_damaged), cmocka_unit_test(passkey_test_names),
    cmocka_unit_test(passkey_test_found),   cmocka_unit_test(transports),
};
BH_TEST_MAIN(tests)
