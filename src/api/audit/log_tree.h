#ifndef BH_API_AUDIT_LOG_TREE_H
#define BH_API_AUDIT_LOG_TREE_H

#include "audit/proof.h"
#include "ports/crypto.h"
#include "ports/store.h"

/* The Merkle tree over the store's committed records, for proofs and tiles.  Leaf hashes
 * are the store's; the root of each 256 of them is computed when it is first asked for
 * and kept, 32 bytes each, because such a subtree never changes.  Thread-safe. */
struct bh_log_tree;

/* The store and the crypto port outlive the tree.  Owned by the caller. */
BH_MUST_USE struct bh_log_tree *bh_log_tree_new(const struct bh_store *store,
                                                const struct bh_crypto_ops *crypto);
void bh_log_tree_free(struct bh_log_tree *tree);

/* Its subtrees.  They fail with BH_NOT_FOUND when the store does not hold the records, and
 * as the store does. */
struct bh_merkle_source bh_log_tree_source(struct bh_log_tree *tree);

#endif
