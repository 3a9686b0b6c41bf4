#ifndef BH_DAEMON_WATERMARK_H
#define BH_DAEMON_WATERMARK_H

#include "audit/merkle.h"
#include "ports/crypto.h"
#include "ports/store.h"

/* The largest tree that was ever signed, in a file beside the key and outside the store:
 * a store that was put back to an earlier day shows.  The file holds the tree's frontier
 * as text and is written before anything is signed over it. */

/* Read the file in `folder`; *ret_found is false when there is none.  BH_INVALID: it is
 * damaged; failures of reading. */
BH_MUST_USE bh_rc bh_watermark_load(const char *folder, struct bh_merkle_frontier *ret_mark,
                                    bool *ret_found, struct bh_err *err);

/* Replace it, durably. */
BH_MUST_USE bh_rc bh_watermark_save(const char *folder, const struct bh_merkle_frontier *mark,
                                    struct bh_err *err);

/* Whether `tree`, the frontier of all records of the store, begins with the tree of the
 * mark: the mark is carried on over the store's records behind it.
 *   BH_CONFLICT  the store has fewer records, or others; failures of the store */
BH_MUST_USE bh_rc bh_watermark_check(const struct bh_merkle_frontier *mark,
                                     const struct bh_merkle_frontier *tree,
                                     const struct bh_store *store,
                                     const struct bh_crypto_ops *crypto, struct bh_err *err);

#endif
