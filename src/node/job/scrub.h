#ifndef BH_NODE_JOB_SCRUB_H
#define BH_NODE_JOB_SCRUB_H

#include "node/core/node.h"

/* Memory that passes from one tenant to another (docs/scrub.md).
 *
 * A partition was just carved for a tenant.  When all of its memory is clean or the tenant's own, it may be
 * used.  Otherwise bulkhead-scrub runs on it, in a sandbox like a job's, and a receipt is noted and sent;
 * only then is the memory clean.  A crash of any program on the way is safe: without the receipt in the
 * journal the partition starts no job.
 *
 * A share's memory is the GPU's: while other leases run there, a scrub fills what none of them was promised,
 * and the receipt says how much that was.
 *
 * A scrub runs beside the node's loop, one on a GPU and BH_SCRUBS_MAX in all.  One that did not end (the
 * helper or the node was killed, the driver refused) is repeated; memory is called bad only when it read back
 * other bytes than were filled.  An order that needs a scrub asks, waits, and asks again until there is an
 * answer.  Until then no other order gets the partition (bh_helper_sandbox_holds), even after the last order
 * for the scrub has ended. */

enum { BH_SCRUBS_MAX = 4 };

BH_MUST_USE struct bh_scrubs *bh_scrubs_new(void);
void bh_scrubs_free(struct bh_scrubs *scrubs); /* NULL is fine; its helpers are sandboxes */

struct bh_scrub_request {
    uint64_t order; /* that it is done for: the receipt's number */
    uint64_t partition;
    uint32_t tenant; /* 0: none yet */
    uint64_t job;
};

/* That of a CARVE, by its note. */
struct bh_scrub_request bh_scrub_request_of(const struct bh_node_record *order);

/* Whether the partition needs a scrub before the tenant may have it. */
bool bh_scrub_is_due(const struct bh_node *node, const struct bh_scrub_request *request);

/* Scrub when it is due, once no other process has files of the partition open (node/placement/handover.h).
 * The partition exists.  BH_OK and `ret_waits`: there is no answer yet.  BH_IO, BH_TIMEOUT, BH_DENIED, ...:
 * it is not clean and must not be used; a receipt says so. */
BH_MUST_USE bh_rc bh_scrub_before(struct bh_node *node, const struct bh_scrub_request *request,
                                  bool *ret_waits, struct bh_err *err);

/* Before a partition is destroyed: processes of leases that were not lent it must have ended
 * (node/placement/handover.h), and a partition whose scrub failed gets another scrub, so that its end means
 * that it is clean.  As bh_scrub_before. */
BH_MUST_USE bh_rc bh_scrub_repeat_failed(struct bh_node *node, const struct bh_scrub_request *request,
                                         bool *ret_waits, struct bh_err *err);

/* Before the lease's tenant uses its partitions: wait for any scrub that still runs there, and check the
 * placements (bh_occupancy_check_lease).  Then scrub, for `order` and one partition after the other, memory
 * of unknown tenants, and of shares also what other leases had since they were carved.  Memory that was
 * cleaned for another job gets a receipt that says so.  BH_CONFLICT: it is another tenant's; else as
 * bh_scrub_before and bh_share_slot_check_memory. */
BH_MUST_USE bh_rc bh_scrub_prepare(struct bh_node *node, const struct bh_node_record *lease, uint64_t order,
                                   bool *ret_waits, struct bh_err *err);

/* Take all scrubs on as far as they go now; the monotonic time of the next thing to do, or 0. */
bh_ns bh_scrubs_tick(struct bh_node *node, bh_ns now);

/* The order has its outcome, or will have none, and asks for its scrubs no longer.  A scrub that is under way
 * ends its run, is not repeated, and then frees its slot. */
void bh_scrub_leave(struct bh_node *node, uint64_t order);

/* Whether a scrub for that order is under way. */
bool bh_scrub_runs(const struct bh_node *node, uint64_t order);

/* Whether one is under way on that GPU, for whatever order. */
bool bh_scrub_runs_on(const struct bh_node *node, const char *gpu);

/* BH_CONFLICT: memory of a partition that the lease was lent is another's, or unknown. */
BH_MUST_USE bh_rc bh_scrub_check(const struct bh_node *node, const struct bh_node_record *lease,
                                 struct bh_err *err);

/* Send all receipts that were not acknowledged; forget one that was. */
void bh_scrub_repeat(struct bh_node *node);
void bh_scrub_acknowledge(struct bh_node *node, uint64_t order);

#endif
