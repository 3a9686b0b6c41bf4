#ifndef BH_DAEMON_NODES_FAILURES_H
#define BH_DAEMON_NODES_FAILURES_H

#include "daemon/state/core.h"

/* Why a job could not be started, in the node's words: sealed under its tenant's key and kept for
 * its people (api/jobs/failure.h), in the batch of the record that says that it could not. */
struct bh_failure {
    bool kept;               /* false: there is nothing to say, or no such lease */
    bh_tenant_id tenant;     /* whose it is: of that record, too, else its loss would be unknown */
    struct bh_digest digest; /* of the sealed text: for that record */
};

/* Results of bh_core_seal and of the store. */
BH_MUST_USE bh_rc bh_failures_keep(struct bh_core *core, uint64_t lease, const char *why,
                                   struct bh_failure *ret_failure, struct bh_err *err);

#endif
