#ifndef BH_NODE_SANDBOX_ISOLATION_CHECKS_H
#define BH_NODE_SANDBOX_ISOLATION_CHECKS_H

#include "node/core/node.h"
#include "node/sandbox/evidence.h"

/* A sandbox as it is, inspected from outside: what the kernel says of its process 1, its
 * control groups and its device fence is held against what was ordered.  Nothing is tried and
 * nothing inside can answer for it.  What is read is read whole, up to a bound that nothing which
 * Bulkhead makes comes near; beyond it, and where something cannot be read, a check is
 * inconclusive. */

struct bh_helper_sandbox;

enum { BH_REPORT_CHECKS_MAX = 256 };

struct bh_report {
    struct bh_msg_check checks[BH_REPORT_CHECKS_MAX];
    uint32_t count, skipped;
    uint32_t failed, inconclusive;
    bool by_host;    /* one of those that failed no job could have made fail */
    bool trespassed; /* another lease is where it may not be (trespass.h): it is ended,
                        and the inspection is made again */
    char why[200];   /* the first that failed, else the first inconclusive one; "" */
};

/* Add a check to a report; who could have made it fail. */
void bh_report_put(struct bh_report *report, const struct bh_msg_check *check, enum bh_evidence_by by);

/* What it comes to: the worst; of no checks, inconclusive. */
enum bh_check_result bh_report_result(const struct bh_report *report);

/* Whether nothing is known against the sandbox but that another lease trespasses there. */
bool bh_report_is_trespass(const struct bh_report *report);

/* What follows from it. */
const struct bh_evidence_remedy *bh_report_remedy(const struct bh_report *report, enum bh_evidence_of of);

/* Inspect the sandbox of a job whose process 1 is `init`. */
void bh_isolation_checks_of_job(struct bh_node *node, const struct bh_job *job, pid_t init,
                                struct bh_report *ret_report);

/* Inspect a sandbox of the node's own.  False: its process 1 does not wait yet. */
bool bh_isolation_checks_of_helper(struct bh_node *node, struct bh_helper_sandbox *helper,
                                   struct bh_report *ret_report);

#endif
