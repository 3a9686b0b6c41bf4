#ifndef BH_DAEMON_CHANGES_VERIFY_H
#define BH_DAEMON_CHANGES_VERIFY_H

#include "api/request/owner.h"
#include "daemon/state/core.h"

/* JOB_VERIFY, NODE_VERIFY, as bh_dispatch_run: the wish is a record, the nodes are asked after
 * the commit, and what each says is another (isolation.verdict, with the same request id).  Who
 * asks for what is being tried already gets the verdict of that try.  A node tries one after the
 * other: so that administrators never wait for long, others' tries that are under way are bounded,
 * for each principal and for each node.
 *   BH_CONFLICT     the job does not run
 *   BH_TOO_MANY     too many tries are under way
 *   BH_NOT_FOUND    no such node
 *   BH_UNAVAILABLE  the node, or every one, is down */
BH_MUST_USE bh_rc bh_verify_run(struct bh_core *core, const struct bh_command *command,
                                struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

#endif
