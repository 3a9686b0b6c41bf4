#ifndef BH_DAEMON_NODES_FAILURES_H
#define BH_DAEMON_NODES_FAILURES_H

#include "daemon/state/core.h"

/* Why a job could not be started, in the node's words: sealed under its tenant's key and kept for
 * its people (api/jobs/failure.h), in the batch of the record that says that it could not. */
enum { BH_FAILURE_SEALED_MAX = 2048 };

struct bh_failure {
    bool kept;           /* false: there is nothing to say, or no such lease */
    bh_tenant_id tenant; /* whose it is: of that record, too, else its loss would be unknown */
    uint64_t job;
    struct bh_digest digest; /* of the sealed text: for that record */
    size_t length;
    char sealed[BH_FAILURE_SEALED_MAX];
};

/* Seal it, before the record that names it.  Results of bh_core_seal. */
BH_MUST_USE bh_rc bh_failures_seal(struct bh_core *core, uint64_t lease, const char *why,
                                   struct bh_failure *ret_failure, struct bh_err *err);

/* Keep it, after that record: a text that no record names would look like one that was put there.  Results of
 * the store. */
BH_MUST_USE bh_rc bh_failures_put(struct bh_core *core, const struct bh_failure *failure, struct bh_err *err);

#endif
