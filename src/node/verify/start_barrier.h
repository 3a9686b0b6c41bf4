#ifndef BH_NODE_VERIFY_START_BARRIER_H
#define BH_NODE_VERIFY_START_BARRIER_H

#include "node/core/node.h"

/* The start barrier: before a job's command begins, its sandbox is inspected from outside
 * (node/sandbox/isolation_checks.h).
 *
 * bulkhead-init, once all its properties are as they will be for the job, waits for a signal.  The node
 * inspects it, and lets it start or ends it (node/sandbox/evidence.h says what else follows).  So no lease
 * ever runs in a sandbox that was not inspected.  An inconclusive inspection is repeated three times; then
 * the job does not start.  A start is answered after the inspection: its record says that the checks passed.
 * After a crash of the node the job waits until the next node has inspected it. */

/* node->barrier_fd is readable: some process 1 waits, so those that were not inspected yet are. */
void bh_start_barrier_notified(struct bh_node *node);

/* job->barrier_at passed: inspect, once process 1 waits. */
void bh_start_barrier_tick(struct bh_node *node, struct bh_job *job, bh_ns now);

#endif
