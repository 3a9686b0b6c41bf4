#ifndef BH_AUDIT_MERKLE_H
#define BH_AUDIT_MERKLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

/* The Merkle tree of RFC 6962 over the journal's records, hashed with SHA-256:
 * a leaf is H(0x00 || record), a node H(0x01 || left || right), the empty tree
 * H(""). */
struct bh_crypto_ops;

enum { BH_MERKLE_HASH_BYTES = 32, BH_MERKLE_PEAKS_MAX = 64, BH_MERKLE_TEXT_MAX = 4200 };

/* All that is needed to add further leaves: the roots of the full subtrees that
 * the tree's size is made of.  A plain value; all zero is the empty tree. */
struct bh_merkle_frontier {
    uint64_t size;
    uint8_t peaks[BH_MERKLE_PEAKS_MAX][BH_MERKLE_HASH_BYTES]; /* [k]: of 2^k leaves, used
                                                                when bit k of size is set */
};

/* The leaf hash of one record. */
void bh_merkle_leaf(const struct bh_crypto_ops *crypto, const void *record, size_t length,
                    uint8_t ret_hash[32]);

/* The hash of a node, from those of its children; `ret_hash` may be one of them. */
void bh_merkle_node(const struct bh_crypto_ops *crypto, const uint8_t left[32], const uint8_t right[32],
                    uint8_t ret_hash[32]);

/* Append one leaf, given by its hash. */
void bh_merkle_frontier_add(struct bh_merkle_frontier *frontier, const struct bh_crypto_ops *crypto,
                            const uint8_t leaf_hash[32]);

/* Root of the tree so far. */
void bh_merkle_frontier_root(const struct bh_merkle_frontier *frontier, const struct bh_crypto_ops *crypto,
                             uint8_t ret_root[32]);

/* The frontier as text, "<size>" and then " <hex>" for each peak, the largest first;
 * at most BH_MERKLE_TEXT_MAX bytes. */
void bh_merkle_frontier_format(struct bh_buf *out, const struct bh_merkle_frontier *frontier);

/* Read that text back.  BH_INVALID when it is anything else. */
BH_MUST_USE bh_rc bh_merkle_frontier_parse(const char *text, struct bh_merkle_frontier *ret_frontier,
                                           struct bh_err *err);

/* Root over `count` leaf hashes at once, by the definition: for tests and small
 * trees. */
void bh_merkle_root(const struct bh_crypto_ops *crypto, const uint8_t (*leaf_hashes)[32], size_t count,
                    uint8_t ret_root[32]);

#endif
