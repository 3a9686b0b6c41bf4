#ifndef BH_NODE_SESSION_JOB_WATCH_H
#define BH_NODE_SESSION_JOB_WATCH_H

#include "node/core/node.h"

/* The course of all jobs, from one turn of the loop to the next. */

/* The keeper's descriptor became readable, or that of what is made before the job can start, or
 * check_at passed: see what became of it.  The job may be forgotten then. */
void bh_job_watch_check(struct bh_node *node, struct bh_job *job);

/* Do what is due; the monotonic time of the next thing that is, or 0. */
bh_ns bh_job_watch_tick(struct bh_node *node, bh_ns now);

/* After a start of the node: find the keepers again, end what has none. */
void bh_job_watch_adopt(struct bh_node *node);

#endif
