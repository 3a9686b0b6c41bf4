#ifndef BH_NODE_JOB_SHARE_SAMPLE_H
#define BH_NODE_JOB_SHARE_SAMPLE_H

#include "node/core/node.h"

/* Put what is known of a job's shares of GPUs into its sample; nothing of one without shares, or
 * of which bulkhead-share has not reported yet. */
void bh_node_share_sample(const struct bh_node *node, const struct bh_job *job, struct bh_msg_sample *sample);

#endif
