#include "audit/proof.h"

#include <stdbool.h>
#include <string.h>

#include "audit/merkle.h"
#include "base/assert.h"
#include "base/num.h"

struct maker {
    const struct bh_crypto_ops *crypto;
    const struct bh_merkle_source *source;
    struct bh_proof proof;
    struct bh_err *err;
};

/* `count` leaves from `first` on. */
struct proof_range {
    uint64_t first, count;
};

static bool
proof_is_power(uint64_t count)
{
    return (count & (count - 1)) == 0;
}

/* The largest power of two below `count`, which is at least 2. */
static uint64_t
proof_split_of(uint64_t count)
{
    BH_ASSERT(count > 1);
    return UINT64_C(1) << (63 - __builtin_clzll(count - 1));
}

/* Its root; splitting a tree as RFC 6962 does keeps whole subtrees on their places. */
static bh_rc
proof_hash_range(const struct maker *maker, struct proof_range range, uint8_t ret_hash[32])
{
    unsigned level = (unsigned)__builtin_ctzll(range.count);
    uint8_t right[32];
    uint64_t split;
    bh_rc rc;

    BH_ASSERT(range.count > 0);
    if (proof_is_power(range.count))
        return maker->source->subtree(maker->source->self, level, range.first >> level, ret_hash, maker->err);
    split = proof_split_of(range.count);
    rc = proof_hash_range(maker, (struct proof_range){ range.first, split }, ret_hash);
    if (rc != BH_OK)
        return rc;
    rc = proof_hash_range(maker, (struct proof_range){ range.first + split, range.count - split }, right);
    if (rc != BH_OK)
        return rc;
    bh_merkle_node(maker->crypto, ret_hash, right, ret_hash);
    return BH_OK;
}

static bh_rc
proof_put_range(struct maker *maker, struct proof_range range)
{
    BH_ASSERT(maker->proof.count < BH_PROOF_HASHES_MAX);
    return proof_hash_range(maker, range, maker->proof.hashes[maker->proof.count++]);
}

bh_rc
bh_proof_root(const struct bh_crypto_ops *crypto, const struct bh_merkle_source *source, uint64_t size,
              uint8_t ret_root[32], struct bh_err *err)
{
    const struct maker maker = { .crypto = crypto, .source = source, .err = err };

    if (size > 0)
        return proof_hash_range(&maker, (struct proof_range){ 0, size }, ret_root);
    bh_merkle_root(crypto, NULL, 0, ret_root);
    return BH_OK;
}

/* PATH of RFC 6962, 2.1.1: `index` counts from the start of the range. */
static bh_rc
proof_put_path(struct maker *maker, struct proof_range range, uint64_t index)
{
    struct proof_range left, right;
    bool below;
    bh_rc rc;

    if (range.count == 1)
        return BH_OK;
    left = (struct proof_range){ range.first, proof_split_of(range.count) };
    right = (struct proof_range){ range.first + left.count, range.count - left.count };
    below = index < left.count;
    rc = below ? proof_put_path(maker, left, index) : proof_put_path(maker, right, index - left.count);
    return rc == BH_OK ? proof_put_range(maker, below ? right : left) : rc;
}

bh_rc
bh_proof_inclusion(const struct bh_crypto_ops *crypto, const struct bh_merkle_source *source,
                   const uint64_t index_and_size[2], struct bh_proof *ret_proof, struct bh_err *err)
{
    struct maker maker = { .crypto = crypto, .source = source, .err = err };
    uint64_t index = index_and_size[0], size = index_and_size[1];
    bh_rc rc;

    if (index >= size)
        return bh_err_set(err, BH_RANGE, "there is no record %" PRIu64 " in a tree of %" PRIu64, index, size);
    rc = proof_put_path(&maker, (struct proof_range){ 0, size }, index);
    if (rc != BH_OK)
        return rc;
    *ret_proof = maker.proof;
    return BH_OK;
}

/* SUBPROOF of RFC 6962, 2.1.2: the first `count` leaves of the range are the older
 * tree's; `known` while they are all of it, so that its root needs no telling. */
static bh_rc
proof_put_subproof(struct maker *maker, struct proof_range range, uint64_t count, bool known)
{
    struct proof_range left, right;
    bool below;
    bh_rc rc;

    if (count == range.count)
        return known ? BH_OK : proof_put_range(maker, range);
    left = (struct proof_range){ range.first, proof_split_of(range.count) };
    right = (struct proof_range){ range.first + left.count, range.count - left.count };
    below = count <= left.count;
    rc = below ? proof_put_subproof(maker, left, count, known)
               : proof_put_subproof(maker, right, count - left.count, false);
    return rc == BH_OK ? proof_put_range(maker, below ? right : left) : rc;
}

bh_rc
bh_proof_consistency(const struct bh_crypto_ops *crypto, const struct bh_merkle_source *source,
                     const uint64_t sizes[2], struct bh_proof *ret_proof, struct bh_err *err)
{
    struct maker maker = { .crypto = crypto, .source = source, .err = err };
    bh_rc rc = BH_OK;

    if (sizes[0] > sizes[1])
        return bh_err_set(err, BH_RANGE, "a tree of %" PRIu64 " records does not begin one of %" PRIu64,
                          sizes[0], sizes[1]);
    if (sizes[0] > 0)
        rc = proof_put_subproof(&maker, (struct proof_range){ 0, sizes[1] }, sizes[0], true);
    if (rc != BH_OK)
        return rc;
    *ret_proof = maker.proof;
    return BH_OK;
}

/* ---- checking, as RFC 9162 (2.1.3.2, 2.1.4.2) words it ---- */

/* The way up: the number of a node and of the last node, level by level. */
struct climb {
    uint64_t node, last;
};

/* Whether the next hash stands left of the node. */
static bool
proof_is_right(const struct climb *climb)
{
    return climb->node & 1 || climb->node == climb->last;
}

/* To the parent; past levels where a last node has no sibling. */
static void
proof_rise(struct climb *climb)
{
    while (!(climb->node & 1) && climb->node == climb->last && climb->node > 0) {
        climb->node >>= 1;
        climb->last >>= 1;
    }
    climb->node >>= 1;
    climb->last >>= 1;
}

bh_rc
bh_proof_check_inclusion(const struct bh_crypto_ops *crypto, const struct bh_proof *proof, uint64_t index,
                         const uint8_t leaf_hash[32], const struct bh_tree_head *tree)
{
    struct climb climb = { index, tree->size - 1 };
    uint8_t hash[32];

    if (index >= tree->size || proof->count > BH_PROOF_HASHES_MAX)
        return BH_CONFLICT;
    memcpy(hash, leaf_hash, sizeof hash);
    for (uint32_t i = 0; i < proof->count; i++) {
        if (climb.last == 0)
            return BH_CONFLICT;
        if (proof_is_right(&climb))
            bh_merkle_node(crypto, proof->hashes[i], hash, hash);
        else
            bh_merkle_node(crypto, hash, proof->hashes[i], hash);
        proof_rise(&climb);
    }
    return climb.last == 0 && memcmp(hash, tree->root, sizeof hash) == 0 ? BH_OK : BH_CONFLICT;
}

/* An empty tree begins every other; its root is known. */
static bh_rc
proof_check_empty(const struct bh_crypto_ops *crypto, const struct bh_proof *proof,
                  const struct bh_tree_head *tree)
{
    uint8_t empty[32];

    bh_merkle_root(crypto, NULL, 0, empty);
    return proof->count == 0 && memcmp(tree->root, empty, sizeof empty) == 0 ? BH_OK : BH_CONFLICT;
}

/* Both roots, from the hash that both trees share on. */
static bh_rc
proof_check_climb(const struct bh_crypto_ops *crypto, const struct bh_proof *proof,
                  const struct bh_tree_head trees[2])
{
    struct climb climb = { trees[0].size - 1, trees[1].size - 1 };
    uint8_t old[32], new[32];
    uint32_t next = proof_is_power(trees[0].size) ? 0 : 1;

    memcpy(old, next ? proof->hashes[0] : trees[0].root, sizeof old);
    memcpy(new, old, sizeof new);
    while (climb.node & 1) {
        climb.node >>= 1;
        climb.last >>= 1;
    }
    for (; next < proof->count; next++) {
        if (climb.last == 0)
            return BH_CONFLICT;
        if (proof_is_right(&climb)) {
            bh_merkle_node(crypto, proof->hashes[next], old, old);
            bh_merkle_node(crypto, proof->hashes[next], new, new);
        } else {
            bh_merkle_node(crypto, new, proof->hashes[next], new);
        }
        proof_rise(&climb);
    }
    return climb.last == 0 && memcmp(old, trees[0].root, sizeof old) == 0
                   && memcmp(new, trees[1].root, sizeof new) == 0
               ? BH_OK
               : BH_CONFLICT;
}

bh_rc
bh_proof_check_consistency(const struct bh_crypto_ops *crypto, const struct bh_proof *proof,
                           const struct bh_tree_head trees[2])
{
    if (trees[0].size > trees[1].size || proof->count > BH_PROOF_HASHES_MAX)
        return BH_CONFLICT;
    if (trees[0].size == 0)
        return proof_check_empty(crypto, proof, &trees[0]);
    if (trees[0].size == trees[1].size)
        return proof->count == 0 && memcmp(trees[0].root, trees[1].root, 32) == 0 ? BH_OK : BH_CONFLICT;
    return proof->count == 0 ? BH_CONFLICT : proof_check_climb(crypto, proof, trees);
}
