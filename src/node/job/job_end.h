#ifndef BH_NODE_JOB_JOB_END_H
#define BH_NODE_JOB_JOB_END_H

#include "node/core/node.h"

/* Why a job has ended, where the node knows better than its exit record. */

/* The job has ended: answer its start, if that waits.  True, and job->end says why, when a check
 * failed before its command began or the runtime never brought it up, when its GPU memory could
 * not be given back, or when the node stopped it (node_stop.h), also a node before this one. */
bool bh_job_end_explain(struct bh_node *node, struct bh_job *job);

#endif
