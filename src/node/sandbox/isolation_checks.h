#ifndef BH_NODE_SANDBOX_ISOLATION_CHECKS_H
#define BH_NODE_SANDBOX_ISOLATION_CHECKS_H

#include "node/core/node.h"
#include "node/sandbox/isolation_report.h"

/* Isolation checks of a sandbox from outside: the kernel's view of its process 1, its control groups and its
 * device fence is compared with what was ordered.  The checks attempt nothing, and no process inside the
 * sandbox answers for it.  A check is inconclusive when something cannot be read, or is larger than anything
 * that Bulkhead makes. */

struct bh_helper_sandbox;

/* Inspect the sandbox of a job whose process 1 is `init`. */
void bh_isolation_checks_of_job(struct bh_node *node, const struct bh_job *job, pid_t init,
                                struct bh_report *ret_report);

/* Inspect a helper sandbox of the node.  False: its process 1 does not wait at the start barrier yet. */
bool bh_isolation_checks_of_helper(struct bh_node *node, struct bh_helper_sandbox *helper,
                                   struct bh_report *ret_report);

#endif
