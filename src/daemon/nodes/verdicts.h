#ifndef BH_DAEMON_NODES_VERDICTS_H
#define BH_DAEMON_NODES_VERDICTS_H

#include "daemon/state/core.h"
#include "wire/message.h"

/* A node says what came of an isolation check that it was asked for (daemon/changes/verify.h,
 * daemon/nodes/checks.h): record it, and step the engine where that puts the node back. */
BH_MUST_USE bh_rc bh_verdicts_record(struct bh_core *core, bh_node_id node,
                                     const struct bh_msg_verdict *verdict, struct bh_err *err);

#endif
