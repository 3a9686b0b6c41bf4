#include "daemon/watermark.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

static const char file[] = "audit.signed";

bh_rc
bh_watermark_load(const char *folder, struct bh_merkle_frontier *ret_mark, bool *ret_found,
                  struct bh_err *err)
{
    char path[4096], memory[BH_MERKLE_TEXT_MAX + 2];
    struct bh_buf text;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read(path, sizeof memory - 1, &text, err);
    *ret_found = rc == BH_OK;
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    if (rc != BH_OK)
        return rc;
    if (text.length > 0 && memory[text.length - 1] == '\n')
        text.length--;
    bh_buf_putc(&text, '\0');
    rc = bh_merkle_frontier_parse(memory, ret_mark, err);
    return rc == BH_OK ? BH_OK : bh_err_wrap(err, "%s", path);
}

bh_rc
bh_watermark_save(const char *folder, const struct bh_merkle_frontier *mark, struct bh_err *err)
{
    char path[4096], memory[BH_MERKLE_TEXT_MAX + 2];
    struct bh_buf text;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_merkle_frontier_format(&text, mark);
    bh_buf_putc(&text, '\n');
    return bh_file_replace(path, text.bytes, text.length, 0600, err);
}

struct extension {
    struct bh_merkle_frontier tree;
    const struct bh_crypto_ops *crypto;
};

static bool
extend(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct extension *extension = self;
    uint8_t hash[32];

    if (seq != extension->tree.size)
        return false;
    bh_merkle_leaf(extension->crypto, leaf, length, hash);
    bh_merkle_frontier_add(&extension->tree, extension->crypto, hash);
    return true;
}

bh_rc
bh_watermark_check(const struct bh_merkle_frontier *mark, const struct bh_merkle_frontier *tree,
                   const struct bh_store *store, const struct bh_crypto_ops *crypto,
                   struct bh_err *err)
{
    struct extension extension = { .tree = *mark, .crypto = crypto };
    uint8_t root[32], extended[32];
    bh_rc rc = BH_OK;

    if (mark->size > tree->size)
        return bh_err_set(err, BH_CONFLICT,
                          "the log holds %" PRIu64 " records but %" PRIu64 " were signed",
                          tree->size, mark->size);
    if (mark->size < tree->size)
        rc = store->ops->list_records(store->self, mark->size, tree->size - 1, extend, &extension,
                                      err);
    if (rc != BH_OK)
        return rc;
    bh_merkle_frontier_root(tree, crypto, root);
    bh_merkle_frontier_root(&extension.tree, crypto, extended);
    if (extension.tree.size == tree->size && memcmp(root, extended, sizeof root) == 0)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT,
                      "the log does not begin with the %" PRIu64 " records that were signed",
                      mark->size);
}
