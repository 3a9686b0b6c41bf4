#include "audit/folder.h"

#include <string.h>

#include "base/num.h"

struct folder_walk {
    const struct bh_folder *folder;
    struct bh_folder_verifier *verifier;
    struct bh_err *err;
};

static bh_rc
folder_read_file(const struct bh_folder *folder, const char *path, struct bh_buf *out, struct bh_err *err)
{
    bh_rc rc;

    bh_buf_clear(out);
    rc = folder->read(folder->self, path, out, err);
    return rc == BH_OK ? BH_OK : bh_err_wrap(err, "%s", path);
}

static bh_rc
folder_read_tile(const struct folder_walk *walk, const struct bh_tile *tile, char path[BH_TILE_PATH_MAX],
                 struct bh_buf *out)
{
    struct bh_buf text;

    bh_buf_init_fixed(&text, path, BH_TILE_PATH_MAX);
    bh_tile_path_format(&text, tile);
    bh_buf_text(&text);
    return folder_read_file(walk->folder, path, out, walk->err);
}

/* A tile is there and says what the records say: a bh_tile_sink. */
static bh_rc
folder_compare_tile(void *self, const struct bh_tile *tile, const uint8_t (*hashes)[32], struct bh_err *err)
{
    const struct folder_walk *walk = self;
    struct bh_buf *found = walk->folder->tile;
    char path[BH_TILE_PATH_MAX];
    bh_rc rc = folder_read_tile(walk, tile, path, found);

    if (rc != BH_OK)
        return rc;
    if (found->length != 32 * (size_t)tile->width)
        return bh_err_set(err, BH_CONFLICT, "%s: it has %zu bytes, not %u", path, found->length,
                          32 * tile->width);
    if (memcmp(found->bytes, hashes, found->length) != 0)
        return bh_err_set(err, BH_CONFLICT, "%s: its hashes are not those of the records", path);
    return BH_OK;
}

static bh_rc
folder_take_hash(struct folder_walk *walk, const uint8_t hash[32])
{
    struct bh_folder_verifier *verifier = walk->verifier;
    const struct bh_tile_sink sink = { folder_compare_tile, walk };

    return bh_tiler_add(&verifier->tiler, verifier->records.crypto, hash, &sink, walk->err);
}

static bh_rc
folder_take_record(struct folder_walk *walk, const char *record, size_t length)
{
    struct bh_folder_verifier *verifier = walk->verifier;
    uint8_t hash[32];
    bh_rc rc = bh_audit_verifier_record(&verifier->records, record, length, NULL, walk->err);

    if (rc != BH_OK)
        return rc;
    bh_merkle_leaf(verifier->records.crypto, record, length, hash);
    return folder_take_hash(walk, hash);
}

/* The bundle may have been pruned: its hashes stand in the lowest tile. */
static bh_rc
folder_take_hashes(struct folder_walk *walk, const struct bh_tile *bundle)
{
    struct bh_tile tile = { .index = bundle->index, .width = bundle->width };
    struct bh_buf *hashes = walk->folder->bundle;
    char path[BH_TILE_PATH_MAX];
    bh_rc rc = folder_read_tile(walk, &tile, path, hashes);

    if (rc == BH_OK && hashes->length != 32 * (size_t)tile.width)
        return bh_err_set(walk->err, BH_CONFLICT, "%s: it has %zu bytes, not %u", path, hashes->length,
                          32 * tile.width);
    for (uint32_t i = 0; rc == BH_OK && i < tile.width; i++) {
        const uint8_t *hash = (const uint8_t *)hashes->bytes + 32 * (size_t)i;

        rc = bh_audit_verifier_hash(&walk->verifier->records, hash, walk->err);
        if (rc == BH_OK)
            rc = folder_take_hash(walk, hash);
    }
    return rc;
}

/* A bundle is missing that was not pruned. */
static bh_rc
folder_check_lack(const struct folder_walk *walk)
{
    const struct bh_audit_verifier *records = &walk->verifier->records;
    struct bh_tile tile = { .entries = true, .width = BH_TILE_WIDTH };
    char path[BH_TILE_PATH_MAX];
    struct bh_buf text;

    if (!bh_audit_verifier_lacks(records))
        return BH_OK;
    tile.index = (records->hashes_to - 1) / BH_TILE_WIDTH;
    bh_buf_init_fixed(&text, path, sizeof path);
    bh_tile_path_format(&text, &tile);
    return bh_err_set(walk->err, BH_NOT_FOUND,
                      "%s is missing, and the log does not say that it "
                      "was pruned",
                      bh_buf_text(&text));
}

static bh_rc
folder_take_bundle(struct folder_walk *walk, const struct bh_tile *tile)
{
    struct bh_buf *bundle = walk->folder->bundle;
    char path[BH_TILE_PATH_MAX];
    size_t at = 0, length;
    bh_rc rc = folder_read_tile(walk, tile, path, bundle);

    if (rc == BH_NOT_FOUND && tile->width == BH_TILE_WIDTH)
        return folder_take_hashes(walk, tile);
    for (uint32_t i = 0; rc == BH_OK && i < tile->width; i++) {
        if (!bh_bundle_step(bundle->bytes + at, bundle->length - at, &length))
            return bh_err_set(walk->err, BH_CONFLICT, "%s: it ends within record %" PRIu64, path,
                              walk->verifier->records.frontier.size);
        rc = folder_take_record(walk, bundle->bytes + at + 2, length);
        at += 2 + length;
    }
    if (rc != BH_OK)
        return rc;
    if (at != bundle->length)
        return bh_err_set(walk->err, BH_CONFLICT, "%s: more stands behind its records", path);
    return BH_OK;
}

/* The checkpoint of the folder, which the bundles must end with. */
static bh_rc
folder_read_checkpoint(struct folder_walk *walk, char note[BH_NODE_RECORD_BYTES_MAX + 1], uint64_t *ret_size)
{
    const struct bh_audit_verifier *records = &walk->verifier->records;
    struct bh_buf *text = walk->folder->tile;
    struct bh_checkpoint checkpoint;
    bh_rc rc = folder_read_file(walk->folder, "checkpoint", text, walk->err);

    if (rc != BH_OK)
        return rc;
    if (text->length > BH_NODE_RECORD_BYTES_MAX || memchr(text->bytes, 0, text->length))
        return bh_err_set(walk->err, BH_CONFLICT, "checkpoint: it is no note");
    memcpy(note, text->bytes, text->length);
    note[text->length] = '\0';
    rc = bh_checkpoint_open(records->crypto, &records->key, note, &checkpoint, walk->err);
    if (rc != BH_OK) {
        bh_err_wrap(walk->err, "checkpoint");
        return walk->err->rc = BH_CONFLICT;
    }
    *ret_size = checkpoint.size;
    return BH_OK;
}

bh_rc
bh_folder_verify(const struct bh_folder *folder, struct bh_folder_verifier *verifier, struct bh_err *err)
{
    struct folder_walk walk = { folder, verifier, err };
    const struct bh_tile_sink sink = { folder_compare_tile, &walk };
    char note[BH_NODE_RECORD_BYTES_MAX + 1];
    uint64_t size = 0;
    bh_rc rc = folder_read_checkpoint(&walk, note, &size);

    if (rc == BH_OK)
        rc = bh_audit_verifier_reaches(&verifier->records, size, err);
    for (uint64_t index = 0; rc == BH_OK && index * BH_TILE_WIDTH < size; index++) {
        const struct bh_tile tile = { .entries = true,
                                      .index = index,
                                      .width = bh_tile_width(0, index, size) };

        rc = folder_take_bundle(&walk, &tile);
    }
    if (rc == BH_OK)
        rc = bh_tiler_end(&verifier->tiler, &sink, err);
    bh_audit_orders_close(&verifier->records.orders);
    if (rc != BH_OK)
        return rc;
    rc = bh_audit_verifier_checkpoint(&verifier->records, note, err);
    if (rc != BH_OK)
        return rc;
    return folder_check_lack(&walk);
}
