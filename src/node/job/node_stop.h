#ifndef BH_NODE_JOB_NODE_STOP_H
#define BH_NODE_JOB_NODE_STOP_H

#include "node/core/node.h"

/* The end of a job that the node stops by itself: it had more of a GPU than its share allows and
 * its SKU says so, or what separates it from others could not be shown. */
struct bh_node_stop {
    uint32_t cause; /* OVER_CAP, OVER_TIME or ISOLATION */
    bh_ns grace_ns; /* SIGTERM, then SIGKILL; 0: SIGKILL at once */
    const char *why;
};

#define BH_NODE_STOP_GRACE (10 * BH_NS_PER_S)

/* Note why, durably, and stop it as any job is stopped.  What cannot be noted is done all the
 * same, and logged.  `job` may be gone afterwards. */
void bh_node_stop_begin(struct bh_node *node, struct bh_job *job, const struct bh_node_stop *end);

#endif
