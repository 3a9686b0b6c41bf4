#include "audit/binding.h"

#include <string.h>

#include "base/test.h"
#include "ports/crypto.h"

static const uint8_t key[32] = { 1, 2, 3, [31] = 9 };

#define C "8b07a7df69a2d40e30b5a53cc1be4be01eac88c0a4bb87b3f0aeeb6f1c1aa31a"
#define ITEM "{\"c\":\"" C "\",\"id\":7,\"kind\":\"tenant\"}"

/* Kind, id, name and key all count; nothing runs over from one into another. */
static void
commits(void **state)
{
    static const struct {
        const char *what, *name;
        uint32_t kind, id;
        uint8_t first;
        bool same;
        /* clang-format off */
    } rows[] = {
        { "the same", "alice", 2, 7, 1, true },    { "another name", "bob", 2, 7, 1, false },
        { "another kind", "alice", 0, 7, 1, false }, { "another id", "alice", 2, 8, 1, false },
        { "another key", "alice", 2, 7, 2, false }, { "longer", "alice ", 2, 7, 1, false },
    };
    /* clang-format on */
    struct bh_binding expected = { .kind = 2, .id = 7 };

    bh_binding_commit(&bh_crypto_openssl, &expected, key, "alice");
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_binding binding = { .kind = rows[i].kind, .id = rows[i].id };
        uint8_t other[32];

        memcpy(other, key, sizeof other);
        other[0] = rows[i].first;
        bh_binding_commit(&bh_crypto_openssl, &binding, other, rows[i].name);
        BH_CHECK_EQ(rows[i].what, memcmp(binding.commitment, expected.commitment, 32) == 0, rows[i].same);
    }
    BH_CHECK_DONE();
}

/* Computed with Python's hmac and hashlib, from the header's words. */
static void
commits_as_others_do(void **state)
{
    struct bh_binding binding = { .kind = 2, .id = 4294967295u };
    char digits[65];
    struct bh_buf text;

    bh_binding_commit(&bh_crypto_openssl, &binding, key, "corp/älice");
    bh_buf_init_fixed(&text, digits, sizeof digits);
    bh_buf_put_hex(&text, binding.commitment, 32);
    BH_CHECK_STR("commitment", bh_buf_text(&text),
                 "e3ae55d5e8891f2e7644f6d3dec1b62c597879c27daf6a43ccbd507461bf40ad");
    BH_CHECK_DONE();
}

static void
reads_what_it_writes(void **state)
{
    struct bh_binding binding = { .kind = 0, .id = 7 }, read;
    char memory[400];
    struct bh_buf list;
    size_t cursor = 0;

    bh_buf_init_fixed(&list, memory, sizeof memory);
    bh_buf_putc(&list, '[');
    bh_binding_put(&list, &binding);
    binding.kind = 6;
    binding.commitment[31] = 0xff;
    bh_binding_put(&list, &binding);
    bh_buf_putc(&list, ']');
    assert_true(bh_binding_is_list((struct bh_slice){ list.bytes, list.length }));
    assert_true(bh_binding_next((struct bh_slice){ list.bytes, list.length }, &cursor, &read));
    BH_CHECK_EQ("first kind", read.kind, 0);
    assert_true(bh_binding_next((struct bh_slice){ list.bytes, list.length }, &cursor, &read));
    BH_CHECK_EQ("second kind", read.kind, 6);
    BH_CHECK_EQ("commitment", read.commitment[31], 0xff);
    BH_CHECK("the end", !bh_binding_next((struct bh_slice){ list.bytes, list.length }, &cursor, &read)
                            && cursor == BH_SLICE_END);
    BH_CHECK_DONE();
}

static void
binding_refuses(void **state)
{
    static const struct {
        const char *what, *text;
        bool good;
    } rows[] = {
        { "one", "[" ITEM "]", true },
        { "two", "[" ITEM "," ITEM "]", true },
        { "none", "[]", false },
        { "no list", ITEM, false },
        { "no id", "[{\"c\":\"" C "\",\"kind\":\"tenant\"}]", false },
        { "id 0", "[{\"c\":\"" C "\",\"id\":0,\"kind\":\"tenant\"}]", false },
        { "id as text", "[{\"c\":\"" C "\",\"id\":\"7\",\"kind\":\"tenant\"}]", false },
        { "too large an id", "[{\"c\":\"" C "\",\"id\":4294967296,\"kind\":\"tenant\"}]", false },
        { "unknown kind", "[{\"c\":\"" C "\",\"id\":7,\"kind\":\"person\"}]", false },
        { "short", "[{\"c\":\"8b\",\"id\":7,\"kind\":\"tenant\"}]", false },
        { "more", "[{\"c\":\"" C "\",\"id\":7,\"kind\":\"tenant\",\"n\":1}]", false },
        { "another order", "[{\"id\":7,\"c\":\"" C "\",\"kind\":\"tenant\"}]", false },
        { "second is none", "[" ITEM ",{}]", false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].what, bh_binding_is_list((struct bh_slice){ rows[i].text, strlen(rows[i].text) }),
                    rows[i].good);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(commits),
    cmocka_unit_test(commits_as_others_do),
    cmocka_unit_test(reads_what_it_writes),
    cmocka_unit_test(binding_refuses),
};
BH_TEST_MAIN(tests)
