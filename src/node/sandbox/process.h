#ifndef BH_NODE_SANDBOX_PROCESS_H
#define BH_NODE_SANDBOX_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "node/core/node.h"

/* What the kernel says of processes that no process inside a sandbox can write: parents, numbers by
 * namespace, states.  Names, arguments and the like are the tenant's to choose. */

/* Process 1 of the sandbox of a lease or a helper: among the processes that its keeper's runtime started, the
 * one that is number 1 of a namespace directly below the node's and in the lease's control groups.  Returns a
 * descriptor of it (pidfd), which the caller closes, and its number here; -1: it does not exist yet, or has
 * ended. */
int bh_process_first(const struct bh_node *node, uint64_t lease, pid_t *ret_pid);

/* Of process 1: whether the runtime has handed over to bulkhead-init, whether that waits at the
 * start barrier, or has let the job's command begin. */
enum bh_first_state { BH_FIRST_SETUP, BH_FIRST_WAITS, BH_FIRST_BEGAN };
enum bh_first_state bh_process_first_state(pid_t pid);

/* Whether a process is ending, or has ended: what is read of it then is no evidence. */
bool bh_process_is_ending(pid_t pid);

#endif
