#ifndef BH_DAEMON_NODES_CHECKS_H
#define BH_DAEMON_NODES_CHECKS_H

#include "daemon/state/core.h"
#include "wire/message.h"

/* Nodes that the engine put aside because jobs failed to start there (engine/gpu/unchecked.h) are asked
 * to run their isolation checks, in a sandbox in which no tenant has a part: at once, then again and again
 * with pauses that double, at most five minutes.  The verdict is an event of the engine's. */

/* Ask those that are due; part of the batch. */
BH_MUST_USE bh_rc bh_checks_ask(struct bh_core *core, struct bh_err *err);

/* A verdict on a node as a whole: the event for it.  False: none, the node is not put aside, or the
 * verdict decides nothing. */
bool bh_checks_event(const struct bh_core *core, bh_node_id node, const struct bh_msg_verdict *verdict,
                     struct bh_event *ret_event);

#endif
