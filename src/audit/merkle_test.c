#include "audit/merkle.h"

#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* The eight leaves of the Certificate Transparency tests. */
static const struct {
    const char *bytes;
    size_t length;
} leaves[8] = {
    { "", 0 },
    { "\x00", 1 },
    { "\x10", 1 },
    { "\x20\x21", 2 },
    { "\x30\x31", 2 },
    { "\x40\x41\x42\x43", 4 },
    { "\x50\x51\x52\x53\x54\x55\x56\x57", 8 },
    { "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16 },
};

static const char *
merkle_hex(const uint8_t hash[32])
{
    static char text[65];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_buf_put_hex(&out, hash, 32);
    return bh_buf_text(&out);
}

static void
known_roots(void **state)
{
    static const struct {
        unsigned size;
        const char *root;
    } rows[] = {
        { 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { 1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d" },
        { 2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125" },
        { 3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77" },
        { 4, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7" },
        { 5, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4" },
        { 8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328" },
    };
    uint8_t hashes[8][32], root[32];

    for (unsigned i = 0; i < 8; i++)
        bh_merkle_leaf(crypto, leaves[i].bytes, leaves[i].length, hashes[i]);
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct bh_merkle_frontier frontier = { 0 };

        for (unsigned i = 0; i < rows[r].size; i++)
            bh_merkle_frontier_add(&frontier, crypto, hashes[i]);
        bh_merkle_frontier_root(&frontier, crypto, root);
        BH_CHECK_STR("frontier", merkle_hex(root), rows[r].root);
        bh_merkle_root(crypto, (const uint8_t(*)[32])hashes, rows[r].size, root);
        BH_CHECK_STR("definition", merkle_hex(root), rows[r].root);
    }
    BH_CHECK_DONE();
}

/* The frontier agrees with the definition at every size, also after it was written
 * down and read back. */
static void
every_size(void **state)
{
    enum { SIZES = 300 };
    static uint8_t hashes[SIZES][32];
    struct bh_merkle_frontier frontier = { 0 }, again;
    char text[BH_MERKLE_TEXT_MAX];
    struct bh_err err;

    for (unsigned i = 0; i < SIZES; i++) {
        uint8_t want[32], got[32];
        struct bh_buf out;

        bh_merkle_leaf(crypto, &i, sizeof i, hashes[i]);
        bh_merkle_frontier_add(&frontier, crypto, hashes[i]);
        bh_buf_init_fixed(&out, text, sizeof text);
        bh_merkle_frontier_format(&out, &frontier);
        assert_int_equal(bh_merkle_frontier_parse(bh_buf_text(&out), &again, &err), BH_OK);
        bh_merkle_root(crypto, (const uint8_t(*)[32])hashes, i + 1, want);
        bh_merkle_frontier_root(&again, crypto, got);
        BH_CHECK_EQ("size", again.size, i + 1);
        BH_CHECK("root", memcmp(want, got, 32) == 0);
        frontier = again;
    }
    BH_CHECK_DONE();
}

static void
text_forms(void **state)
{
    static const char *const refused[] = {
        "",
        " ",
        "x",
        "1",
        "0 ",
        "01",
        "2 00",
        "18446744073709551616",
        "3 aa bb",
        "1 6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01D",
        "1 6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d ",
        "1  6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01",
    };
    struct bh_merkle_frontier frontier = { .size = 7 };
    char text[BH_MERKLE_TEXT_MAX];
    struct bh_buf out;
    struct bh_err err;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        BH_CHECK_EQ(refused[i], bh_merkle_frontier_parse(refused[i], &frontier, &err), BH_INVALID);
    BH_CHECK_EQ("untouched", frontier.size, 7);
    BH_CHECK_EQ("empty", bh_merkle_frontier_parse("0", &frontier, &err), BH_OK);
    frontier.size = UINT64_MAX;
    bh_buf_init_fixed(&out, text, sizeof text);
    bh_merkle_frontier_format(&out, &frontier);
    BH_CHECK("largest fits", bh_buf_text(&out));
    BH_CHECK_EQ("largest", bh_merkle_frontier_parse(text, &frontier, &err), BH_OK);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_roots),
    cmocka_unit_test(every_size),
    cmocka_unit_test(text_forms),
};
BH_TEST_MAIN(tests)
