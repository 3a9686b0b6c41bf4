#ifndef BH_SIGNER_WATERMARK_H
#define BH_SIGNER_WATERMARK_H

#include <stdbool.h>

#include "audit/merkle.h"
#include "base/err.h"

/* The largest tree that was ever signed, in the file audit.signed beside the key and outside
 * the store: a store that was put back to an earlier day shows.  The file holds the tree's
 * frontier as text and is written before anything is signed over it. */

/* Read the file in `folder`; *ret_found is false when there is none, and the mark then is
 * the empty tree.  BH_INVALID: it is damaged; failures of reading. */
BH_MUST_USE bh_rc bh_watermark_load(const char *folder, struct bh_merkle_frontier *ret_watermark,
                                    bool *ret_found, struct bh_err *err);

/* Replace it, durably. */
BH_MUST_USE bh_rc bh_watermark_save(const char *folder, const struct bh_merkle_frontier *watermark,
                                    struct bh_err *err);

#endif
