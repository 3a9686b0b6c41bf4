#include "audit/tile.h"

#include <string.h>

#include "audit/merkle.h"
#include "base/num.h"

enum { GROUP = 1000, LEVEL_BITS = 8 };

/* ---- paths ---- */

/* Groups of three digits, all but the last with an x before them. */
static void
tile_put_index(struct bh_buf *out, uint64_t index)
{
    char groups[8][8];
    unsigned count = 0;

    for (; count == 0 || index > 0; index /= GROUP, count++) {
        uint64_t group = index % GROUP;
        char *text = groups[count];

        text[0] = 'x';
        text[1] = (char)('0' + group / 100);
        text[2] = (char)('0' + group / 10 % 10);
        text[3] = (char)('0' + group % 10);
        text[4] = '\0';
    }
    for (; count > 1; count--) {
        bh_buf_puts(out, groups[count - 1]);
        bh_buf_putc(out, '/');
    }
    bh_buf_puts(out, groups[0] + 1);
}

void
bh_tile_path_format(struct bh_buf *out, const struct bh_tile *tile)
{
    bh_buf_puts(out, "tile/");
    if (tile->entries)
        bh_buf_puts(out, "entries");
    else
        bh_buf_put_u64(out, tile->level);
    bh_buf_putc(out, '/');
    tile_put_index(out, tile->index);
    if (tile->width == BH_TILE_WIDTH)
        return;
    bh_buf_puts(out, ".p/");
    bh_buf_put_u64(out, tile->width);
}

static bool
tile_step_text(const char **at, const char *text)
{
    size_t length = strlen(text);

    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

static bool
tile_step_digits(const char **at, unsigned least, unsigned most, uint64_t *ret)
{
    uint64_t value = 0;
    unsigned count = 0;

    for (; count < most && **at >= '0' && **at <= '9'; ++*at, count++)
        value = value * 10 + (uint64_t)(**at - '0');
    *ret = value;
    return count >= least;
}

static bool
tile_step_index(const char **at, uint64_t *ret)
{
    uint64_t index = 0, group;
    bool more = true;

    while (more) {
        more = tile_step_text(at, "x");
        if (!tile_step_digits(at, 3, 3, &group) || (more && !tile_step_text(at, "/"))
            || !bh_mul_u64(index, GROUP, &index) || !bh_add_u64(index, group, &index))
            return false;
    }
    *ret = index;
    return true;
}

bool
bh_tile_path_parse(const char *path, struct bh_tile *ret_tile)
{
    struct bh_tile tile = { .width = BH_TILE_WIDTH };
    char memory[BH_TILE_PATH_MAX];
    const char *at = path, *again;
    uint64_t level = 0, width = BH_TILE_WIDTH;
    struct bh_buf out;

    if (!tile_step_text(&at, "tile/"))
        return false;
    tile.entries = tile_step_text(&at, "entries/");
    if (!tile.entries && (!tile_step_digits(&at, 1, 1, &level) || !tile_step_text(&at, "/")))
        return false;
    if (level >= BH_TILE_LEVELS || !tile_step_index(&at, &tile.index))
        return false;
    if (tile_step_text(&at, ".p/") && (!tile_step_digits(&at, 1, 3, &width) || width == 0))
        return false;
    tile.level = (uint32_t)level;
    tile.width = (uint32_t)width;
    /* What is written in another way, with leading zeros or a partial tile of 256, is
     * not what we would have written. */
    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_tile_path_format(&out, &tile);
    again = bh_buf_text(&out);
    if (*at || width > BH_TILE_WIDTH || !again || strcmp(again, path) != 0)
        return false;
    *ret_tile = tile;
    return true;
}

uint32_t
bh_tile_width(uint32_t level, uint64_t index, uint64_t size)
{
    uint64_t hashes = level < BH_TILE_LEVELS ? size >> LEVEL_BITS * level : 0;
    uint64_t before;

    if (!bh_mul_u64(index, BH_TILE_WIDTH, &before) || before >= hashes)
        return 0;
    return hashes - before < BH_TILE_WIDTH ? (uint32_t)(hashes - before) : BH_TILE_WIDTH;
}

/* ---- bundles ---- */

void
bh_bundle_put(struct bh_buf *bundle, const void *record, uint16_t length)
{
    bh_buf_putc(bundle, (char)(length >> 8));
    bh_buf_putc(bundle, (char)(length & 0xff));
    bh_buf_put(bundle, record, length);
}

bool
bh_bundle_step(const char *bundle, size_t length, size_t *ret_length)
{
    size_t record;

    if (length < 2)
        return false;
    record = (size_t)(uint8_t)bundle[0] << 8 | (uint8_t)bundle[1];
    if (record > length - 2)
        return false;
    *ret_length = record;
    return true;
}

/* ---- making tiles ---- */

bh_rc
bh_tiler_add(struct bh_tiler *tiler, const struct bh_crypto_ops *crypto, const uint8_t leaf_hash[32],
             const struct bh_tile_sink *sink, struct bh_err *err)
{
    uint64_t number = tiler->size++; /* of the hash within its level */
    uint8_t hash[32];
    bh_rc rc = BH_OK;

    memcpy(hash, leaf_hash, sizeof hash);
    for (uint32_t level = 0; rc == BH_OK && level < BH_TILE_LEVELS; level++) {
        const struct bh_tile tile = { .level = level,
                                      .index = number / BH_TILE_WIDTH,
                                      .width = BH_TILE_WIDTH };
        uint8_t(*hashes)[32] = tiler->hashes[level];

        memcpy(hashes[number % BH_TILE_WIDTH], hash, sizeof hash);
        if (number % BH_TILE_WIDTH != BH_TILE_WIDTH - 1)
            return BH_OK;
        rc = sink->put(sink->self, &tile, (const uint8_t(*)[32])hashes, err);
        bh_merkle_root(crypto, (const uint8_t(*)[32])hashes, BH_TILE_WIDTH, hash);
        number = tile.index;
    }
    return rc;
}

bh_rc
bh_tiler_end(const struct bh_tiler *tiler, const struct bh_tile_sink *sink, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t level = 0; rc == BH_OK && level < BH_TILE_LEVELS; level++) {
        uint64_t hashes = tiler->size >> LEVEL_BITS * level;
        const struct bh_tile tile = { .level = level,
                                      .index = hashes / BH_TILE_WIDTH,
                                      .width = (uint32_t)(hashes % BH_TILE_WIDTH) };

        if (tile.width > 0)
            rc = sink->put(sink->self, &tile, tiler->hashes[level], err);
    }
    return rc;
}
