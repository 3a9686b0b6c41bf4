#ifndef BH_NODE_SHARE_END_H
#define BH_NODE_SHARE_END_H

#include "node/node.h"

/* The end of a job that had more of a GPU than its share allows, where its SKU says so. */

/* `cause` is OVER_CAP or OVER_TIME.  Note why, durably, and stop it as any job is stopped: SIGTERM, ten seconds, SIGKILL.  What cannot
 * be noted is done all the same, and logged. */
void bh_node_share_end(struct bh_node *node, struct bh_job *job, uint32_t cause, const char *why);

/* The job has ended: true, and job->end says why, when it was ended by bh_node_share_end, also by
 * a node before this one. */
bool bh_node_share_ended(struct bh_job *job);

#endif
