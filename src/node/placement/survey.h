#ifndef BH_NODE_PLACEMENT_SURVEY_H
#define BH_NODE_PLACEMENT_SURVEY_H

#include "node/core/node.h"

/* What the node reads of its GPUs at intervals, beside its loop: a scan for the samples, and each GPU's
 * health.  A gpu child of its own answers one question after the other, so that a driver that is slow or
 * hangs delays no order. */

BH_MUST_USE struct bh_survey *bh_survey_new(void);
void bh_survey_free(struct bh_survey *survey); /* NULL is fine */

/* Ask when those before are answered; once, however often it is wanted.  The answers go to
 * bh_report_scanned and bh_health_found. */
void bh_survey_scan(struct bh_node *node);
void bh_survey_health(struct bh_node *node, const char *gpu);

#endif
