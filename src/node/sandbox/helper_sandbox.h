#ifndef BH_NODE_SANDBOX_HELPER_SANDBOX_H
#define BH_NODE_SANDBOX_HELPER_SANDBOX_H

#include "node/core/node.h"

/* Sandboxes of the node's own: helpers of scrubs, probes of `bulkhead verify`.
 *
 * A helper sandbox is started and inspected exactly as a job's is (launch.h, verify/start_barrier.h), but is
 * no job: it has a number that no lease has (node.h) and no place in the journal.  One that a crash left
 * behind is ended at the next start, as any container that the journal does not know.  No call waits for one:
 * its course is read whenever the node's loop turns. */
struct bh_helper_sandbox;

enum { BH_HELPER_SANDBOXES_MAX = 16, BH_HELPER_SANDBOX_OUTPUT_MAX = 64 << 10 };

BH_MUST_USE struct bh_helper_sandboxes *bh_helper_sandboxes_new(void);

/* Ends all of them; what does not go in two seconds is left to the next start. */
void bh_helper_sandboxes_free(struct bh_node *node);

struct bh_helper_sandbox_request {
    const struct bh_msg_start *start;     /* its lease is the helper's number */
    const struct bh_node_partition *lent; /* the partition that it may use; NULL: none */
    bool alone;                           /* no other process may use the partition meanwhile */
    bool apart;                           /* its user ids are the probe's (uid_ranges.h) */
};

/* Start one: its process 1 will wait at the start barrier.
 *   BH_FULL      all ranges of user ids, or all helpers, are in use
 *   BH_CONFLICT  the last helper of that number has not gone
 * else as bh_launch.  On failure nothing is left. */
BH_MUST_USE bh_rc bh_helper_sandbox_start(struct bh_node *node,
                                          const struct bh_helper_sandbox_request *request,
                                          struct bh_helper_sandbox **ret_helper, struct bh_err *err);

/* Once its process 1 waits: what its sandbox was built for, for bh_isolation_checks_of_helper; else NULL. */
const struct bh_job *bh_helper_sandbox_await(const struct bh_node *node, struct bh_helper_sandbox *helper,
                                             pid_t *ret_init);

/* Release it from the start barrier: it waits, and was inspected. */
BH_MUST_USE bh_rc bh_helper_sandbox_release(struct bh_helper_sandbox *helper, struct bh_err *err);

bool bh_helper_sandbox_has_ended(const struct bh_helper_sandbox *helper);

/* What it wrote so far, as text. */
void bh_helper_sandbox_read(const struct bh_helper_sandbox *helper,
                            char ret_text[BH_HELPER_SANDBOX_OUTPUT_MAX]);

/* SIGKILL to all of it, without waiting.  To be called again until it has ended: the runtime may
 * just be making it. */
void bh_helper_sandbox_kill(struct bh_node *node, const struct bh_helper_sandbox *helper);

/* It is over: remove it.  What does not go sits in the kernel; it keeps its partition, its number and
 * its user ids until it does. */
void bh_helper_sandbox_remove(struct bh_node *node, struct bh_helper_sandbox *helper);

/* Remove what has gone by now; the monotonic time of the next look, or 0. */
bh_ns bh_helper_sandboxes_tick(struct bh_node *node, bh_ns now);

/* Descriptors to poll: each is readable when a helper has ended.  How many. */
uint32_t bh_helper_sandboxes_fds(const struct bh_node *node, int ret_fds[BH_HELPER_SANDBOXES_MAX]);

/* Whether a helper has that placement, or a part of it, to itself. */
bool bh_helper_sandbox_holds(const struct bh_node *node, const struct bh_node_partition *placement);

/* What helper number `at` (below BH_HELPER_SANDBOXES_MAX) was lent; NULL: there is none. */
const struct bh_node_record *bh_helper_sandbox_record(const struct bh_node *node, uint32_t at);

/* The lowest range of user ids that neither a job nor a helper has, or uid_ranges of node.conf. */
uint32_t bh_helper_sandbox_free_slot(const struct bh_node *node);

#endif
