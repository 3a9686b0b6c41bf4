#ifndef BH_NODE_SESSION_JOB_MAPPING_H
#define BH_NODE_SESSION_JOB_MAPPING_H

#include "node/core/node.h"

/* Files that tell a dcgm-exporter beside this node which jobs hold what, as its option
 * --hpc-job-mapping-dir reads them: one for each GPU ("0", by the driver's index) or GPU instance
 * ("0.7") that is held, a job id on each line.  The folder is Bulkhead's alone. */

/* Bring the folder of node.conf up to date, if who holds what has changed since the last call; without
 * a folder nothing.  What cannot be written is logged, and tried again with the next change. */
void bh_job_mapping_tick(struct bh_node *node);

#endif
