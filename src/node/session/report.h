#ifndef BH_NODE_SESSION_REPORT_H
#define BH_NODE_SESSION_REPORT_H

#include "node/core/node.h"

/* What the node reports without a request: its inventory, use and faults. */

void bh_report_inventory(struct bh_node *node);

/* Usage of every running job and the GPUs' sensors, after a scan for that (node/placement/survey.h), which
 * came out well or not. */
void bh_report_scanned(struct bh_node *node, bool well);

#endif
