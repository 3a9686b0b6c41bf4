#ifndef BH_DAEMON_NODES_FAULTS_H
#define BH_DAEMON_NODES_FAULTS_H

#include "daemon/state/core.h"
#include "wire/message.h"

/* What a node says of its GPUs' health, judged by the tables (model/health.h) and reported to
 * the engine with what is to be done.
 *
 * Every fault that changes something is a record.  Faults of applications change no GPU: they
 * are records of their tenant, so many an hour, and the log says once that there are more. */

enum { BH_FAULTS_TENANT_HOUR = 20, BH_FAULTS_GPU_HOUR = 60 };

/* Whether nothing may be placed on a GPU with that fault (enum bh_fault).  What runs there runs on
 * where it is an isolation check that failed: each lease ends by its own checks alone. */
static inline bool
bh_fault_fences(uint32_t fault)
{
    return fault == BH_FAULT_LOST || fault == BH_FAULT_HUNG || fault == BH_FAULT_ISOLATION;
}

/* One report; a GPU that is not known is passed over.  Results of bh_core_step. */
BH_MUST_USE bh_rc bh_faults_receive(struct bh_core *core, bh_node_id node, const struct bh_msg_health *health,
                                    struct bh_err *err);

#endif
