#include "audit/tile.h"

#include "audit/merkle.h"
#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

static void
paths(void **state)
{
    static const struct {
        const char *path;
        struct bh_tile tile;
    } rows[] = {
        { "tile/0/x001/x234/067", { false, 0, 1234067, 256 } }, /* C2SP's own example */
        { "tile/0/000", { false, 0, 0, 256 } },
        { "tile/0/273.p/112", { false, 0, 273, 112 } },
        { "tile/2/000.p/1", { false, 2, 0, 1 } },
        { "tile/7/255", { false, 7, 255, 256 } },
        { "tile/entries/x001/000.p/12", { true, 0, 1000, 12 } },
        { "tile/0/x018/x446/x744/x073/x709/x551/615", { false, 0, UINT64_MAX, 256 } },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char memory[BH_TILE_PATH_MAX];
        struct bh_tile tile = { 0 };
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_tile_path_format(&out, &rows[i].tile);
        BH_CHECK_STR(rows[i].path, bh_buf_text(&out), rows[i].path);
        BH_CHECK(rows[i].path, bh_tile_path_parse(rows[i].path, &tile));
        BH_CHECK_EQ(rows[i].path, tile.entries, rows[i].tile.entries);
        BH_CHECK_EQ(rows[i].path, tile.level, rows[i].tile.level);
        BH_CHECK_EQ(rows[i].path, tile.index, rows[i].tile.index);
        BH_CHECK_EQ(rows[i].path, tile.width, rows[i].tile.width);
    }
    BH_CHECK_DONE();
}

static void
other_paths(void **state)
{
    static const char *const refused[] = {
        "",
        "tile",
        "tile/",
        "tile/0",
        "tile/0/",
        "tile/8/000",
        "tile/00/000",
        "tile/-1/000",
        "tile/0/0",
        "tile/0/0000",
        "tile/0/1000",
        "tile/0/001/067",
        "tile/0/x000/067",
        "tile/0/x001",
        "tile/0/x001/",
        "tile/0/000/",
        "tile/0/000.p",
        "tile/0/000.p/",
        "tile/0/000.p/0",
        "tile/0/000.p/01",
        "tile/0/000.p/256",
        "tile/0/000.p/257",
        "tile/0/000.p/1000",
        "tile/0/000.p/1/",
        "tile/entries/0/000",
        "tile/data/000",
        "/tile/0/000",
        "tile/0/x01/000",
        "tile/0/../000",
        "tile/0/000 ",
        "tile/0/x018/x446/x744/x073/x709/x551/616",
        "tile/0/x999/x999/x999/x999/x999/x999/x999/999",
    };
    struct bh_tile tile;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        BH_CHECK(refused[i], !bh_tile_path_parse(refused[i], &tile));
    BH_CHECK_DONE();
}

/* The sizes that C2SP's tlog-tiles works out for 70,000 records. */
static void
widths(void **state)
{
    static const struct {
        uint32_t level;
        uint64_t index, size;
        uint32_t width;
        /* clang-format off */
    } rows[] = {
        { 0, 272, 70000, 256 }, { 0, 273, 70000, 112 }, { 0, 274, 70000, 0 },
        { 1, 0, 70000, 256 },   { 1, 1, 70000, 17 },    { 2, 0, 70000, 1 },
        { 3, 0, 70000, 0 },     { 0, 0, 0, 0 },         { 0, 0, 256, 256 },
        { 0, 1, 256, 0 },       { 1, 0, 256, 1 },       { 8, 0, UINT64_MAX, 0 },
        { 7, 0, UINT64_MAX, 255 }, { 0, UINT64_MAX, UINT64_MAX, 0 },
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        BH_CHECK_EQ("width", bh_tile_width(rows[i].level, rows[i].index, rows[i].size), rows[i].width);
    BH_CHECK_DONE();
}

static void
bundles(void **state)
{
    static const char long_record[65535] = { 1 };
    static char memory[70000];
    struct bh_buf out;
    size_t length;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_bundle_put(&out, "{}", 2);
    bh_bundle_put(&out, "", 0);
    bh_bundle_put(&out, long_record, sizeof long_record);
    assert_int_equal(out.length, 4 + 2 + 2 + 65535);
    assert_memory_equal(memory, "\0\x02{}\0\0\xff\xff\x01", 9);
    BH_CHECK("first", bh_bundle_step(memory, out.length, &length) && length == 2);
    BH_CHECK("empty", bh_bundle_step(memory + 4, out.length - 4, &length) && length == 0);
    BH_CHECK("last", bh_bundle_step(memory + 6, out.length - 6, &length) && length == 65535);
    BH_CHECK("cut", !bh_bundle_step(memory + 6, out.length - 7, &length));
    BH_CHECK("no length", !bh_bundle_step(memory, 1, &length));
    BH_CHECK("nothing", !bh_bundle_step(memory, 0, &length));
    BH_CHECK_DONE();
}

enum { LEAVES = 66000 };

static uint8_t hashes[LEAVES][32];
static unsigned full[3], partial[3];

/* Each hash of a tile is the root of its 256^level leaves, by the definition. */
static bh_rc
check_tile(void *self, const struct bh_tile *tile, const uint8_t (*got)[32], struct bh_err *err)
{
    size_t each = (size_t)1 << 8 * tile->level, step = tile->width > 50 ? 50 : 1;

    assert_true(tile->level < 3);
    ++*(tile->width == BH_TILE_WIDTH ? &full[tile->level] : &partial[tile->level]);
    for (size_t i = 0; i < tile->width; i += step) {
        uint8_t root[32];

        bh_merkle_root(crypto, (const uint8_t(*)[32])hashes + (tile->index * 256 + i) * each, each, root);
        BH_CHECK("hash", memcmp(root, got[i], 32) == 0);
    }
    return self ? BH_IO : BH_OK;
}

static void
tiles(void **state)
{
    static struct bh_tiler tiler;
    struct bh_tile_sink sink = { check_tile, NULL };
    struct bh_err err;

    for (uint32_t i = 0; i < LEAVES; i++) {
        bh_merkle_leaf(crypto, &i, sizeof i, hashes[i]);
        assert_int_equal(bh_tiler_add(&tiler, crypto, hashes[i], &sink, &err), BH_OK);
    }
    assert_int_equal(bh_tiler_end(&tiler, &sink, &err), BH_OK);
    BH_CHECK_EQ("level 0", full[0], 257);
    BH_CHECK_EQ("level 1", full[1], 1);
    BH_CHECK_EQ("level 0, partial", partial[0], 1);
    BH_CHECK_EQ("level 1, partial", partial[1], 1);
    BH_CHECK_EQ("level 2, partial", partial[2], 1);
    sink.self = &sink;
    BH_CHECK_EQ("the sink's failure", bh_tiler_end(&tiler, &sink, &err), BH_IO);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(paths),   cmocka_unit_test(other_paths), cmocka_unit_test(widths),
    cmocka_unit_test(bundles), cmocka_unit_test(tiles),
};
BH_TEST_MAIN(tests)
