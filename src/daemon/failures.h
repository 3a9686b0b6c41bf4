#ifndef BH_DAEMON_FAILURES_H
#define BH_DAEMON_FAILURES_H

#include "daemon/core.h"

/* Why a job of that lease could not be started, in the node's words: sealed under its tenant's
 * key and kept for its people (api/failure.h), in the batch of the record that says that it could
 * not.  `ret_digest` is for that record.  BH_OK and `ret_kept` false: there is nothing to say, or
 * no such lease.  Results of bh_core_seal and of the store. */
BH_MUST_USE bh_rc bh_failures_keep(struct bh_core *core, uint64_t lease, const char *why,
                                   bool *ret_kept, struct bh_digest *ret_digest,
                                   struct bh_err *err);

#endif
