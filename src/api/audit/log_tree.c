#include "api/audit/log_tree.h"

#include <stdlib.h>
#include <string.h>

#include "audit/merkle.h"
#include "base/assert.h"
#include "base/lock.h"
#include "base/num.h"
#include "base/vec.h"

enum { BLOCK_LEVEL = 8, BLOCK = 1 << BLOCK_LEVEL, BLOCKS_MAX = 1 << 30 };

struct bh_log_tree {
    struct bh_store store;
    const struct bh_crypto_ops *crypto;
    struct bh_mutex mutex;
    /* under mutex: roots of the first `count` * 256 records, by 256 */
    uint8_t (*blocks)[32];
    uint64_t count, capacity;
};

struct bh_log_tree *
bh_log_tree_new(const struct bh_store *store, const struct bh_crypto_ops *crypto)
{
    struct bh_log_tree *tree = calloc(1, sizeof *tree);

    BH_ASSERT(tree);
    tree->store = *store;
    tree->crypto = crypto;
    bh_mutex_init(&tree->mutex, BH_LOCK_LOG_TREE);
    return tree;
}

void
bh_log_tree_free(struct bh_log_tree *tree)
{
    if (!tree)
        return;
    bh_mutex_fini(&tree->mutex);
    free(tree->blocks);
    free(tree);
}

/* ---- leaf hashes ---- */

struct leaves {
    uint8_t hashes[BLOCK][32];
    uint64_t first;
    uint32_t count, wanted;
};

static bool
log_tree_store_leaf(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct leaves *leaves = self;

    if (seq != leaves->first + leaves->count)
        return false;
    memcpy(leaves->hashes[leaves->count++], hash->bytes, 32);
    return leaves->count < leaves->wanted;
}

static bh_rc
tree_root_of_leaves(const struct bh_log_tree *tree, unsigned level, uint64_t index, uint8_t ret_hash[32],
                    struct bh_err *err)
{
    struct leaves leaves = { .first = index << level, .wanted = 1u << level };
    bh_rc rc =
        tree->store.ops->list_hashes(tree->store.self, leaves.first, log_tree_store_leaf, &leaves, err);

    BH_ASSERT(level <= BLOCK_LEVEL);
    if (rc != BH_OK)
        return rc;
    if (leaves.count < leaves.wanted)
        return bh_err_set(err, BH_NOT_FOUND, "there is no record %" PRIu64, leaves.first + leaves.count);
    bh_merkle_root(tree->crypto, (const uint8_t(*)[32])leaves.hashes, leaves.count, ret_hash);
    return BH_OK;
}

/* ---- what is kept ---- */

static void
log_tree_reserve(struct bh_log_tree *tree)
{
    bool fits = bh_vec_reserve(&tree->blocks, &tree->capacity, tree->count + 1, BLOCKS_MAX);

    BH_ASSERT(fits);
}

struct growth {
    struct bh_log_tree *tree;
    struct leaves leaves;
    uint64_t wanted; /* blocks */
};

/* One walk fills many blocks. */
static bool
tree_grow_by_leaf(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct growth *growth = self;
    struct bh_log_tree *tree = growth->tree;
    struct leaves *leaves = &growth->leaves;

    if (seq != leaves->first + leaves->count)
        return false;
    memcpy(leaves->hashes[leaves->count++], hash->bytes, 32);
    if (leaves->count < BLOCK)
        return true;
    log_tree_reserve(tree);
    bh_merkle_root(tree->crypto, (const uint8_t(*)[32])leaves->hashes, BLOCK, tree->blocks[tree->count++]);
    leaves->first += BLOCK;
    leaves->count = 0;
    return tree->count < growth->wanted;
}

static bh_rc
log_tree_grow(struct bh_log_tree *tree, uint64_t wanted, struct bh_err *err)
{
    struct growth growth = { .tree = tree, .leaves.first = tree->count * BLOCK, .wanted = wanted };
    bh_rc rc = BH_OK;

    if (tree->count < wanted)
        rc = tree->store.ops->list_hashes(tree->store.self, growth.leaves.first, tree_grow_by_leaf, &growth,
                                          err);
    if (rc != BH_OK)
        return rc;
    if (tree->count < wanted)
        return bh_err_set(err, BH_NOT_FOUND, "there are no %" PRIu64 " records", wanted * BLOCK);
    return BH_OK;
}

static bh_rc
log_tree_subtree(void *self, unsigned level, uint64_t index, uint8_t ret_hash[32], struct bh_err *err)
{
    struct bh_log_tree *tree = self;
    uint64_t width;
    bh_rc rc;

    if (level < BLOCK_LEVEL)
        return tree_root_of_leaves(tree, level, index, ret_hash, err);
    width = UINT64_C(1) << (level - BLOCK_LEVEL);
    bh_mutex_lock(&tree->mutex);
    rc = log_tree_grow(tree, (index + 1) * width, err);
    if (rc == BH_OK)
        bh_merkle_root(tree->crypto, (const uint8_t(*)[32])tree->blocks + index * width, width, ret_hash);
    bh_mutex_unlock(&tree->mutex);
    return rc;
}

struct bh_merkle_source
bh_log_tree_source(struct bh_log_tree *tree)
{
    return (struct bh_merkle_source){ log_tree_subtree, tree };
}
