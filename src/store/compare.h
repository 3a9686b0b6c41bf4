#ifndef BH_STORE_COMPARE_H
#define BH_STORE_COMPARE_H

#include "ports/store.h"

/* The rows of a store (any back end) held against its log. */
struct bh_claims;
struct bh_claims_result;
struct bh_crypto_ops;

/* Compare names, jobs and texts with what the records said, which bh_store_audit gathered: the
 * store did not change in between.
 *   BH_CONFLICT  a row does not have the form of one
 *   BH_FULL      there are more names than memory; failures of the store */
BH_MUST_USE bh_rc bh_store_compare(const struct bh_store *store, const struct bh_crypto_ops *crypto,
                                   struct bh_claims *claims, struct bh_claims_result *ret_result,
                                   struct bh_err *err);

#endif
