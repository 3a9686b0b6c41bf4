#ifndef BH_DAEMON_CHANGES_VERIFY_H
#define BH_DAEMON_CHANGES_VERIFY_H

#include "api/request/owner.h"
#include "daemon/state/core.h"

/* JOB_VERIFY, NODE_VERIFY, as bh_dispatch_run: the request is a record, the nodes are asked after the commit,
 * and each verdict is another record (isolation.verdict, with the same request id).  A request for a check
 * that is under way gets the verdict of that check.  A node runs one check after the other: so that
 * administrators never wait for long, the checks of other users that are under way are bounded, for each
 * principal and for each node.
 *   BH_CONFLICT     the job does not run
 *   BH_TOO_MANY     too many checks are under way
 *   BH_NOT_FOUND    no such node
 *   BH_UNAVAILABLE  the node, or every one, is down */
BH_MUST_USE bh_rc bh_verify_run(struct bh_core *core, const struct bh_command *command,
                                struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

#endif
