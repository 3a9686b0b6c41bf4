#ifndef BH_NODE_SANDBOX_SANDBOX_SPEC_H
#define BH_NODE_SANDBOX_SANDBOX_SPEC_H

#include "base/arena.h"
#include "node/core/node.h"

/* From an order to a sandbox: everything that START names is checked against node.conf
 * and resolved; what remains for the runtime is complete. */

/* Make the bundle folder, root, mounts and the description.  Texts live in `arena`.
 * BH_DENIED, BH_INVALID: the message names the field, the hint the fix.  On failure
 * bh_sandbox_spec_remove clears what was made.  `ret_remark` gets a line for the job's log, or "". */
struct bh_sandbox_spec_request {
    struct bh_node *node;
    const struct bh_msg_start *start;
    const struct bh_job *job;
    struct bh_arena *arena;
};
BH_MUST_USE bh_rc bh_sandbox_spec_build(const struct bh_sandbox_spec_request *request,
                                        struct bh_sandbox *ret_sandbox, char ret_remark[200],
                                        struct bh_err *err);

/* Undo the mounts of a job's bundle and remove it. */
void bh_sandbox_spec_remove(const struct bh_node *node, uint64_t lease);

#endif
