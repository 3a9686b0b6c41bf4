#ifndef BH_AUDIT_RANGE_H
#define BH_AUDIT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/merkle.h"

/* The leaves from one record to another as few hashes: the roots of the largest aligned
 * subtrees that lie between.  Appended to the frontier of a tree that ends where the range
 * begins, they give the frontier of the larger tree, and nothing else fits there: so they
 * prove that the larger tree continues the smaller one. */

enum { BH_RANGE_NODES_MAX = 128 };

struct bh_range_node {
    uint32_t level; /* it is the root of 2^level leaves */
    uint8_t hash[BH_MERKLE_HASH_BYTES];
};

/* A plain value: all zero but for `from` and `to`, which are the same, is empty. */
struct bh_range {
    uint64_t from, to; /* the first leaf, and the one behind the last */
    uint32_t count;
    struct bh_range_node nodes[BH_RANGE_NODES_MAX]; /* in the order of their leaves */
};

/* The empty range that begins at leaf `from`. */
void bh_range_begin(struct bh_range *range, uint64_t from);

/* Append the next leaf, by its hash. */
void bh_range_add(struct bh_range *range, const struct bh_crypto_ops *crypto, const uint8_t leaf_hash[32]);

/* Append the range to the tree that ends where it begins.  False, and nothing was changed,
 * when it does not begin there or is no range. */
BH_MUST_USE bool bh_merkle_frontier_extend(struct bh_merkle_frontier *frontier,
                                           const struct bh_crypto_ops *crypto, const struct bh_range *range);

#endif
