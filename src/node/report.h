#ifndef BH_NODE_REPORT_H
#define BH_NODE_REPORT_H

#include "node/node.h"

/* What the node tells without being asked: what is here, what is used, what is broken. */

void bh_report_inventory(struct bh_node *node);

/* How often the marks have changed, where that was not told on this connection. */
void bh_report_marks(struct bh_node *node);

/* Usage of every running job and the GPUs' sensors, after a scan for that (node/survey.h), which
 * came out well or not. */
void bh_report_scanned(struct bh_node *node, bool well);

/* Report the end of a job that has ended, with how long ago that was. */
void bh_report_end(struct bh_node *node, const struct bh_job *job);

/* Report the jobs on that GPU that have ended and were not looked at yet.  Called before a report
 * that ends what runs there: an end that is on disk is the job's own.  Forgets none. */
void bh_report_ends(struct bh_node *node, const char *gpu);

#endif
