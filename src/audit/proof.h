#ifndef BH_AUDIT_PROOF_H
#define BH_AUDIT_PROOF_H

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

/* Proofs over the journal's Merkle tree (RFC 6962): that a record is in a tree of some
 * size, and that one tree is the beginning of another.  Both are short lists of hashes
 * and need no more of the tree to be checked than its root. */
struct bh_crypto_ops;

enum { BH_PROOF_HASHES_MAX = 64 };

struct bh_proof {
    uint32_t count;
    uint8_t hashes[BH_PROOF_HASHES_MAX][32]; /* in the order in which they are needed */
};

/* Where the hashes of a tree come from. */
struct bh_merkle_source {
    /* The root of the 2^level leaves from leaf index * 2^level on, all of which are in
     * the tree. */
    bh_rc (*subtree)(void *self, unsigned level, uint64_t index, uint8_t ret_hash[32], struct bh_err *err);
    void *self;
};

/* A tree as a checkpoint states it. */
struct bh_tree_head {
    uint64_t size;
    uint8_t root[32];
};

/* Root of the first `size` leaves.  Failures of the source. */
BH_MUST_USE bh_rc bh_proof_root(const struct bh_crypto_ops *crypto, const struct bh_merkle_source *source,
                                uint64_t size, uint8_t ret_root[32], struct bh_err *err);

/* The proof that leaf `index` is in the tree of the first `size` leaves.
 *   BH_RANGE  there is no such leaf in it; failures of the source */
BH_MUST_USE bh_rc bh_proof_inclusion(const struct bh_crypto_ops *crypto,
                                     const struct bh_merkle_source *source, const uint64_t index_and_size[2],
                                     struct bh_proof *ret_proof, struct bh_err *err);

/* The proof that the tree of `sizes[0]` leaves is the beginning of that of `sizes[1]`.
 *   BH_RANGE  the first is the larger one; failures of the source */
BH_MUST_USE bh_rc bh_proof_consistency(const struct bh_crypto_ops *crypto,
                                       const struct bh_merkle_source *source, const uint64_t sizes[2],
                                       struct bh_proof *ret_proof, struct bh_err *err);

/* Check that the leaf of that hash is number `index` of the tree.
 *   BH_CONFLICT  it is not proved */
BH_MUST_USE bh_rc bh_proof_check_inclusion(const struct bh_crypto_ops *crypto, const struct bh_proof *proof,
                                           uint64_t index, const uint8_t leaf_hash[32],
                                           const struct bh_tree_head *tree);

/* Check that `trees[0]` is the beginning of `trees[1]`.
 *   BH_CONFLICT  it is not proved */
BH_MUST_USE bh_rc bh_proof_check_consistency(const struct bh_crypto_ops *crypto, const struct bh_proof *proof,
                                             const struct bh_tree_head trees[2]);

#endif
