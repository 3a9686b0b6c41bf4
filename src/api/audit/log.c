#include "api/audit/log.h"

#include <string.h>

#include "api/audit/log_tree.h"
#include "api/documents/minimum.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "audit/merkle.h"
#include "audit/tile.h"
#include "audit/tlog_proof.h"
#include "base/base64.h"
#include "base/num.h"
#include "base/slice.h"

/* ---- the newest checkpoint ---- */

struct newest {
    struct bh_arena *arena;
    const char *note;
    uint64_t size;
};

static bool
log_find_newer(void *self, const struct bh_checkpoint_row *row)
{
    struct newest *newest = self;

    newest->size = row->size;
    newest->note = bh_arena_strndup(newest->arena, row->note, strlen(row->note));
    return true;
}

/* Of at least `least` records; note is NULL when there is none. */
static bh_rc
log_find_newest(const struct bh_call *call, uint64_t least, struct newest *ret, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    uint64_t last = 0;
    bh_rc rc = store->ops->last_record(store->self, &last, err);

    *ret = (struct newest){ .arena = call->arena };
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    /* Checkpoints are many: look near the end first. */
    for (uint64_t back = 1 << 10; rc == BH_OK && !ret->note; back <<= 4) {
        uint64_t from = last > back ? last - back : 0;

        rc = store->ops->list_checkpoints(store->self, from > least ? from : least, log_find_newer, ret, err);
        if (from <= least)
            break;
    }
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* ---- proofs ---- */

struct log_found {
    struct bh_arena *arena;
    const char *leaf;
    size_t length;
};

static bool
log_copy_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct log_found *found = self;

    found->leaf = bh_arena_strndup(found->arena, leaf, length);
    found->length = length;
    return false;
}

/* The record, where the caller may see it whole; other records do not exist for it. */
static bh_rc
log_find_record(struct bh_call *call, uint64_t seq, struct log_found *ret, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct bh_visible visible;
    struct bh_slice leaf, value;
    uint64_t tenant = 0;
    bool others;
    bh_rc rc = bh_visible_find(call, "record.view", &visible, err);

    *ret = (struct log_found){ .arena = call->arena };
    if (rc != BH_OK)
        return rc;
    rc = bh_minimum_check(store, seq, err);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_records(store->self, seq, seq, log_copy_record, ret, err);
    if (rc != BH_OK)
        return rc;
    leaf = (struct bh_slice){ ret->leaf, ret->length };
    if (ret->leaf && bh_slice_get(leaf, "tenant", &value))
        (void)bh_slice_u64(value, &tenant);
    others = ret->leaf && bh_slice_get(leaf, "do", &value);
    if (ret->leaf && (visible.all || (tenant && !others && bh_visible_has(&visible, (uint32_t)tenant))))
        return BH_OK;
    call->probed = true;
    return bh_err_set(err, BH_NOT_FOUND, "no record %" PRIu64 " that you may see whole", seq);
}

/* The proof takes the record along as its `extra`. */
static bh_rc
log_put_proof(struct bh_call *call, struct bh_tlog_proof *proof, const struct log_found *record,
              uint64_t size, struct bh_err *err)
{
    size_t extra_size = record->length / 3 * 4 + 8;
    struct bh_buf extra, text;
    char *memory;
    bh_rc rc = bh_call_alloc(call, extra_size + BH_TLOG_PROOF_BYTES_MAX, &memory, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&extra, memory, extra_size);
    bh_base64_encode(&extra, record->leaf, record->length);
    proof->extra = extra.bytes;
    proof->extra_length = extra.length;
    bh_buf_init_fixed(&text, memory + extra_size, BH_TLOG_PROOF_BYTES_MAX);
    bh_tlog_proof_format(&text, proof);
    BH_REPLY_WITH(call, record_proof, .index = proof->index, .leaf = { record->leaf, record->length },
                  .proof = bh_buf_text(&text), .size = size);
    return BH_OK;
}

bh_rc
bh_log_prove(struct bh_call *call, struct bh_err *err)
{
    const struct bh_merkle_source source = bh_log_tree_source(call->api->tree);
    struct bh_tlog_proof proof = { 0 };
    struct log_found record;
    struct newest newest;
    uint64_t where[2];
    bh_rc rc = bh_parse_u64(call->id, &proof.index, err);

    if (rc != BH_OK || proof.index >= INT64_MAX)
        return bh_err_set(err, BH_NOT_FOUND, "no record %.40s", call->id);
    rc = log_find_record(call, proof.index, &record, err);
    if (rc != BH_OK)
        return rc;
    rc = log_find_newest(call, proof.index + 1, &newest, err);
    if (rc != BH_OK)
        return rc;
    if (!newest.note) {
        bh_err_set(err, BH_UNAVAILABLE, "no checkpoint covers record %" PRIu64 " yet", proof.index);
        return bh_err_hint(err, "one is signed every checkpoint_interval while records come");
    }
    where[0] = proof.index;
    where[1] = newest.size;
    proof.note = newest.note;
    rc = bh_proof_inclusion(call->api->options.crypto, &source, where, &proof.path, err);
    return rc == BH_OK ? log_put_proof(call, &proof, &record, newest.size, err) : rc;
}

enum { HASH_TEXT_SIZE = 48, LOG_KEYS_MAX = 8192 };

static bh_rc
log_format_path(const struct bh_call *call, const struct bh_proof *proof, struct bh_texts *ret,
                struct bh_err *err)
{
    char(*texts)[HASH_TEXT_SIZE];
    bh_rc rc = bh_call_alloc(call, proof->count * sizeof *texts, &texts, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, proof->count * sizeof *ret->items, &ret->items, err);
    if (rc != BH_OK)
        return rc;
    for (; ret->count < proof->count; ret->count++) {
        struct bh_buf hash;

        bh_buf_init_fixed(&hash, texts[ret->count], HASH_TEXT_SIZE);
        bh_base64_encode(&hash, proof->hashes[ret->count], 32);
        ret->items[ret->count] = bh_buf_text(&hash);
    }
    return BH_OK;
}

bh_rc
bh_log_prove_consistency(struct bh_call *call, struct bh_err *err)
{
    const struct bh_merkle_source source = bh_log_tree_source(call->api->tree);
    const struct bh_store *store = &call->api->options.store;
    struct bh_texts hashes = { NULL, 0 };
    const uint64_t sizes[2] = { call->query.old, call->query.new };
    uint64_t last = 0;
    struct bh_proof proof;
    bh_rc rc = store->ops->last_record(store->self, &last, err);

    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    if (sizes[1] > (rc == BH_OK ? last + 1 : 0))
        return bh_err_set(err, BH_RANGE, "new: there are no %" PRIu64 " records", sizes[1]);
    rc = bh_proof_consistency(call->api->options.crypto, &source, sizes, &proof, err);
    if (rc != BH_OK)
        return rc;
    rc = log_format_path(call, &proof, &hashes, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, consistency_proof, .hashes = hashes, .later = sizes[1], .earlier = sizes[0]);
    return BH_OK;
}

/* ---- files ---- */

static void
log_cache(struct bh_call *call, const char *how)
{
    bh_reply_header(call->reply, "Cache-Control", how);
}

bh_rc
bh_log_checkpoint(struct bh_call *call, struct bh_err *err)
{
    struct newest newest;
    bh_rc rc = log_find_newest(call, 0, &newest, err);

    if (rc != BH_OK)
        return rc;
    if (!newest.note)
        return bh_err_set(err, BH_NOT_FOUND, "no checkpoint was signed yet");
    call->reply->content_type = "text/plain; charset=utf-8";
    log_cache(call, "no-cache");
    bh_buf_puts(&call->reply->body, newest.note);
    return BH_OK;
}

/* How many records there are is what all tenants do together. */
bh_rc
bh_log_show(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    const struct bh_api_options *options = &call->api->options;
    BH_AUTO(bh_buf_fini) struct bh_buf keys = { .max = LOG_KEYS_MAX };
    struct bh_visible visible;
    uint64_t minimum, last = 0;
    struct newest newest;
    bh_rc rc = bh_visible_find(call, "record.view", &visible, err);

    if (rc == BH_OK)
        rc = bh_minimum_read(store, &minimum, err);
    if (rc == BH_OK)
        rc = log_find_newest(call, 0, &newest, err);
    if (rc == BH_OK)
        rc = options->log_keys(options->log_folder, &keys, err);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->last_record(store->self, &last, err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    BH_REPLY_WITH(call, log_shown, .checkpoint = newest.note, .keys = bh_buf_text(&keys), .minimum = minimum,
                  .records = !visible.all  ? (uint64_t)BH_UNSET
                             : rc == BH_OK ? last + 1
                                           : 0,
                  .signed_ns = options->owner.ops->last_signed(options->owner.self).at_ns,
                  .size = newest.size);
    return BH_OK;
}

bh_rc
bh_log_minimum(struct bh_call *call, struct bh_err *err)
{
    uint64_t minimum;
    bh_rc rc = bh_minimum_read(&call->api->options.store, &minimum, err);

    if (rc != BH_OK)
        return rc;
    call->reply->content_type = "text/plain; charset=utf-8";
    log_cache(call, "no-cache");
    bh_buf_printf(&call->reply->body, "%" PRIu64 "\n", minimum);
    return BH_OK;
}

/* What the path asks for: a tile of committed records; it will never change. */
static bh_rc
log_find_tile(const struct bh_call *call, bool entries, struct bh_tile *ret, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    char path[BH_TILE_PATH_MAX + 16];
    struct bh_buf text;
    uint64_t last = 0;
    bh_rc rc;

    bh_buf_init_fixed(&text, path, sizeof path);
    bh_buf_puts(&text, entries ? "tile/entries/" : "tile/");
    bh_buf_puts(&text, call->id);
    if (!bh_buf_text(&text) || !bh_tile_path_parse(path, ret) || ret->entries != entries)
        return bh_err_set(err, BH_NOT_FOUND, "no such tile: %.60s", call->id);
    rc = store->ops->last_record(store->self, &last, err);
    if (rc == BH_OK && bh_tile_width(ret->level, ret->index, last + 1) >= ret->width)
        return BH_OK;
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    return bh_err_set(err, BH_NOT_FOUND, "the log does not reach to %.60s yet", path);
}

static void
log_begin_tile(struct bh_call *call, bool entries)
{
    call->reply->content_type = "application/octet-stream";
    log_cache(call, entries ? "private, max-age=31536000, immutable" : "public, max-age=31536000, immutable");
}

struct leaf_tile {
    struct bh_buf *out;
    uint32_t left;
};

static bool
log_put_leaf_hash(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct leaf_tile *tile = self;

    bh_buf_put(tile->out, hash->bytes, sizeof hash->bytes);
    return --tile->left > 0;
}

static bh_rc
log_put_hashes(const struct bh_call *call, const struct bh_tile *tile, struct bh_err *err)
{
    const struct bh_merkle_source source = bh_log_tree_source(call->api->tree);
    const struct bh_store *store = &call->api->options.store;
    struct leaf_tile leaves = { &call->reply->body, tile->width };
    uint64_t first = tile->index * BH_TILE_WIDTH;
    uint8_t hash[32];
    bh_rc rc = BH_OK;

    if (tile->level == 0)
        return store->ops->list_hashes(store->self, first, log_put_leaf_hash, &leaves, err);
    for (uint32_t i = 0; rc == BH_OK && i < tile->width; i++) {
        rc = source.subtree(source.self, 8 * tile->level, first + i, hash, err);
        bh_buf_put(&call->reply->body, hash, rc == BH_OK ? sizeof hash : 0);
    }
    return rc;
}

bh_rc
bh_log_tile(struct bh_call *call, struct bh_err *err)
{
    struct bh_tile tile;
    bh_rc rc = log_find_tile(call, false, &tile, err);

    if (rc != BH_OK)
        return rc;
    rc = log_put_hashes(call, &tile, err);
    if (rc != BH_OK)
        return rc;
    log_begin_tile(call, false);
    return BH_OK;
}

static bool
log_put_entry(void *self, uint64_t seq, const char *leaf, size_t length)
{
    bh_bundle_put(self, leaf, (uint16_t)length);
    return true;
}

static const struct bh_field prune_fields[] = {
    BH_F(struct bh_prune_request, checkpoint, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED,
         .max = BH_NODE_RECORD_BYTES_MAX,
         .doc = "the signed checkpoint of an export that was verified: what it covers may go"),
};
const struct bh_fields bh_prune_request_fields =
    BH_FIELDS("prune_request", struct bh_prune_request, prune_fields);

bh_rc
bh_log_prune(struct bh_call *call, struct bh_err *err)
{
    struct bh_prune_request request = { 0 };
    struct bh_command command = { .dry_run = call->query.dry_run };
    bh_rc rc = bh_call_body(call, &bh_prune_request_fields, &request, err);

    command.checkpoint = request.checkpoint;
    return rc == BH_OK ? bh_call_send(call, &command, err) : rc;
}

bh_rc
bh_log_entries(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct bh_tile tile;
    uint64_t first;
    bh_rc rc = log_find_tile(call, true, &tile, err);

    if (rc != BH_OK)
        return rc;
    first = tile.index * BH_TILE_WIDTH;
    rc = bh_minimum_check(store, first, err);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_records(store->self, first, first + tile.width - 1, log_put_entry,
                                  &call->reply->body, err);
    if (rc != BH_OK)
        return rc;
    log_begin_tile(call, true);
    return BH_OK;
}
