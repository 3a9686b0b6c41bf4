#ifndef BH_NODE_VERIFY_START_BARRIER_H
#define BH_NODE_VERIFY_START_BARRIER_H

#include "node/core/node.h"

/* The start barrier: before a job's command begins, its sandbox is inspected from outside
 * (node/sandbox/isolation_checks.h).
 *
 * bulkhead-init, when everything about it stands as it will for the job, waits for a signal.  The
 * node inspects, and lets it go, or ends it (node/sandbox/evidence.h says what else follows).  So no lease
 * ever runs in a sandbox that was not inspected.  An inspection that is inconclusive is made three
 * times more; then the job does not start.  A start is answered when that is over: its record says
 * that the checks passed.  After a crash of the node the wait goes on until the next one has
 * inspected. */

/* node->barrier_fd is readable: some process 1 waits, so those that were not inspected yet are. */
void bh_start_barrier_notified(struct bh_node *node);

/* job->barrier_at passed: inspect, once process 1 waits. */
void bh_start_barrier_tick(struct bh_node *node, struct bh_job *job, bh_ns now);

#endif
