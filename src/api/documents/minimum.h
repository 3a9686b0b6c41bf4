#ifndef BH_API_DOCUMENTS_MINIMUM_H
#define BH_API_DOCUMENTS_MINIMUM_H

#include "ports/store.h"

/* The audit log's minimum index, as C2SP's tlog-tiles has it: of the records below it the
 * store keeps the hashes alone (daemon/changes/retention.h).  It stands in the store under this name. */
#define BH_META_MINIMUM "minimum"

/* Up to where what pruned records said of rows was carried on, without a gap (audit/bound.h). */
#define BH_META_CARRIED "carried"

/* 0 while nothing was pruned.  Any thread.  Failures of the store; BH_BUG: it is no number. */
BH_MUST_USE bh_rc bh_minimum_read(const struct bh_store *store, uint64_t *ret_minimum, struct bh_err *err);

/* Whether the log still has that record's bytes.  As bh_minimum_read; BH_NOT_FOUND: it was pruned. */
BH_MUST_USE bh_rc bh_minimum_check(const struct bh_store *store, uint64_t seq, struct bh_err *err);

#endif
