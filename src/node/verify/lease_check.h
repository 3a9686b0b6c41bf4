#ifndef BH_NODE_VERIFY_LEASE_CHECK_H
#define BH_NODE_VERIFY_LEASE_CHECK_H

#include "node/core/node.h"
#include "node/sandbox/isolation_checks.h"

/* Isolation checks of running leases, and what follows from them for the lease alone
 * (node/sandbox/evidence.h).
 *
 * After an inconclusive check the lease's isolation level is no longer verified.  It is checked again after
 * verify_retry_ms of node.conf, three times; then it is stopped where its boundary needs the level.  A failed
 * check ends the lease.  A check that is inconclusive because another lease trespasses changes nothing, and
 * is repeated when that lease has ended.  The job's submitter is notified of each change. */

/* Check a lease now and act on it, with each check in `ret_report`.  False: it has no process 1
 * that could be inspected, because it ends or has not begun; nothing follows then.  `job` may be
 * gone afterwards. */
bool bh_lease_check(struct bh_node *node, struct bh_job *job, struct bh_report *ret_report);

/* The same of one that a node before this one started: how it stood is not known here, so that it
 * is reported also when it passes. */
void bh_lease_check_adopt(struct bh_job *job);

/* End those that were charged with a trespass (trespass.h). */
void bh_lease_check_charged(struct bh_node *node);

/* Do what is due for a lease, and send its pending notices. */
void bh_lease_check_tick(struct bh_node *node, struct bh_job *job, bh_ns now);

/* Monotonic; when bh_lease_check_tick has something to do, or 0. */
bh_ns bh_lease_check_due(const struct bh_job *job);

#endif
