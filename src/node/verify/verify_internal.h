#ifndef BH_NODE_VERIFY_VERIFY_INTERNAL_H
#define BH_NODE_VERIFY_VERIFY_INTERNAL_H

#include "node/placement/fence.h"
#include "node/sandbox/isolation_checks.h"
#include "node/verify/verify_retry.h"

/* What verify.c and verify_fence.c share. */

enum { BH_VERIFY_ASKED_MAX = 64 };

struct bh_verify_asked {
    uint64_t request, lease;
    bh_ns until; /* monotonic; how long to wait for the end of a trespassing job */
    char cause[16];
};

struct bh_verify {
    struct bh_verify_asked asked[BH_VERIFY_ASKED_MAX];
    uint32_t asked_count;
    struct bh_helper_sandbox *probe; /* of the try that runs, or NULL */
    bool started, killed;
    bool lease_gone; /* the one that was asked about ends, or does not run here */
    bh_ns until;     /* monotonic; it is killed, or given up when it was */
    bh_ns check_at;  /* monotonic; not inspected before: a trespassing lease ends first */
    uint64_t tries;
    uint32_t starts;              /* of jobs, since the last sample */
    char driver[40];              /* at the last try */
    char passed_driver[40];       /* at the last that held */
    int canary;                   /* abstract socket that no process inside may reach */
    struct bh_report own, report; /* of the probe and its sandbox; and all that is answered */
    struct bh_msg_verdict unsent; /* checks are the report's */
    bool has_unsent;
    enum bh_isolation isolation; /* of the machine's kind of sandbox */
    char why[200];               /* when unfinished or broken */
    bool failed_node;            /* a try of the node failed: only one that is asked for lifts that */
    struct bh_verify_retry retry;
    struct bh_fences fences;
};

/* Asserts what holds of it between two calls. */
void bh_verify_assert(const struct bh_verify *verify);

/* The wall clock's time of the next try by itself. */
uint64_t bh_verify_fence_retry_ns(const struct bh_verify *verify);

/* No GPU takes a new lease; those that run, run on, and are checked each for itself.  What failed
 * is not forgotten for a try that was inconclusive. */
void bh_verify_fence_close_all(struct bh_node *node, enum bh_isolation isolation, const char *why);

/* Only a try that was inconclusive is made again unasked, as long as none has failed. */
void bh_verify_fence_plan(struct bh_node *node, bool failed, const char *why);

/* After a check that passed; `asked`: it was requested for the whole node, which lifts a failed one's fence.
 */
void bh_verify_fence_lift(struct bh_node *node, bool asked);

#endif
