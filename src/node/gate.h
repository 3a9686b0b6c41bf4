#ifndef BH_NODE_GATE_H
#define BH_NODE_GATE_H

#include "node/node.h"

/* Before a job's command begins, its sandbox is looked at from outside (node/inspect.h).
 *
 * bulkhead-init, when everything about it stands as it will for the job, waits for a signal.  The
 * node looks, and lets it go, or ends it and fences its GPUs.  So no lease ever runs behind walls
 * that were not seen.  A start is answered when the look is over: its record says that the walls
 * stood.  After a crash of the node the wait goes on until the next one has looked. */

/* A keeper was started, or found again: look when process 1 waits. */
void bh_gate_shut(struct bh_job *job);

/* job->gate_at passed: look whether process 1 is there, and then at the walls. */
void bh_gate_tick(struct bh_node *node, struct bh_job *job, bh_ns now);

/* The job is gone before or after the look: answer its start.  True when that failed because of a
 * wall: job->end says so, then. */
bool bh_gate_ended(struct bh_node *node, struct bh_job *job);

/* Process 1 of a container, once it waits: 0 while it does not yet.  `ret_passed`: it has gone
 * on already. */
pid_t bh_gate_waiting(const struct bh_node *node, const char *id, bool *ret_passed);

/* Whether a process has ended, perhaps unreaped: then there is nothing to look at. */
bool bh_gate_is_gone(pid_t pid);

/* Process 1 of a container that runs, or 0. */
pid_t bh_gate_init(const struct bh_node *node, const char *id);

#endif
