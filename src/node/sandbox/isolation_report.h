#ifndef BH_NODE_SANDBOX_ISOLATION_REPORT_H
#define BH_NODE_SANDBOX_ISOLATION_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "node/sandbox/evidence.h"
#include "wire/message.h"

/* The results of isolation checks, and what follows from them (node/sandbox/evidence.h). */

enum { BH_REPORT_CHECKS_MAX = 256 };

struct bh_report {
    struct bh_msg_check checks[BH_REPORT_CHECKS_MAX];
    uint32_t count, skipped;
    uint32_t failed, inconclusive;
    bool by_host;    /* a check failed that no job can make fail */
    bool trespassed; /* a process of another lease is there (node/placement/trespass.h): that lease is
                        ended, and the inspection is repeated */
    char why[200];   /* the first check that failed, else the first inconclusive one; "" */
};

/* Add a check; `by`: who can make it fail.  A full report still counts what it does not list. */
void bh_report_put(struct bh_report *report, const struct bh_msg_check *check, enum bh_evidence_by by);

/* The worst result of its checks; of none, inconclusive. */
enum bh_check_result bh_report_result(const struct bh_report *report);

/* Whether the only evidence is that another lease trespasses there. */
bool bh_report_is_trespass(const struct bh_report *report);

/* What follows from the report for the job, its GPU and the node. */
const struct bh_evidence_remedy *bh_report_remedy(const struct bh_report *report, enum bh_evidence_of of);

#endif
