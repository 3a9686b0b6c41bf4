#ifndef BH_DAEMON_NODES_FAILURES_H
#define BH_DAEMON_NODES_FAILURES_H

#include "daemon/state/core.h"

/* Keep where the node says why the job could not be started, or was ended, for its people
 * (api/jobs/failure.h): in the record that core->recorded has the number of, as its note.  Results of the
 * store. */
BH_MUST_USE bh_rc bh_failures_put(struct bh_core *core, bh_job_id job, struct bh_err *err);

#endif
