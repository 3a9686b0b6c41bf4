#ifndef BH_DAEMON_NODES_NOTICES_H
#define BH_DAEMON_NODES_NOTICES_H

#include "daemon/state/core.h"
#include "wire/message.h"

/* What a node says of a job with a share of a GPU: a record of the job's tenant, "share.<name>" of
 * tables/job_notices.tbl, and the job's notices (api/jobs/job_notices.h), in one batch.  That of a lease
 * which has ended, or is another node's, is dropped.  Results of bh_core_begin, bh_core_record and of
 * the store. */
BH_MUST_USE bh_rc bh_notices_record(struct bh_core *core, bh_node_id node, const struct bh_msg_notice *notice,
                                    struct bh_err *err);

#endif
