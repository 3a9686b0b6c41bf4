#ifndef BH_NODE_INSPECT_H
#define BH_NODE_INSPECT_H

#include "node/node.h"

/* A sandbox as it stands, looked at from outside: what the kernel says of its process 1, its
 * control groups and its device fence is held against what was ordered.  Nothing is tried and
 * nothing inside can answer for it. */

enum { BH_REPORT_CHECKS_MAX = 256 };

struct bh_report {
    struct bh_msg_check checks[BH_REPORT_CHECKS_MAX];
    uint32_t count, skipped;
    uint32_t broken;             /* did not hold, of what had the time to */
    char why[200];               /* the first of those, else the first without an answer; "" */
};

/* Add a check to a report. */
void bh_report_put(struct bh_report *report, const struct bh_msg_check *check);
bool bh_report_held(const struct bh_report *report);

/* What it comes to; nothing but checks without an answer is BH_WALLS_UNFINISHED. */
enum bh_walls bh_report_walls(const struct bh_report *report);

/* Look at the sandbox of a job whose process 1 is `init`. */
void bh_inspect(struct bh_node *node, const struct bh_job *job, pid_t init,
                struct bh_report *ret_report);

#endif
