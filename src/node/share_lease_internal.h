#ifndef BH_NODE_SHARE_LEASE_INTERNAL_H
#define BH_NODE_SHARE_LEASE_INTERNAL_H

#include "node/node.h"
#include "node/share.h"
#include "node/share_over.h"
#include "node/share_untold.h"

/* What the files node/share_*.c know of the leases whose shares are open.  Which ones are follows
 * from the node's journal alone: after a crash the same ones are opened again. */

/* GPU memory as the driver says it, of the GPU where it is most beyond what is allowed. */
struct bh_share_look {
    bool seen;
    char gpu[BH_UUID_MAX];
    uint64_t bytes, allowed_bytes;
};

struct bh_share_lease_row {
    uint64_t lease;
    bool paused, throttled;
    struct bh_share_look look;
    struct bh_share_over over;
    struct bh_share_untold untold[BH_JOB_NOTICES];
};

struct bh_share_leases {
    struct bh_share_host *host;
    struct bh_share_lease_row rows[BH_SHARE_LEASES_MAX];
    uint32_t count;
    bh_ns tried_at;   /* monotonic; when leases of before were asked for last */
    bh_ns compare_at; /* monotonic; when the driver is asked next */
};

/* NULL: its share is not open. */
struct bh_share_lease_row *bh_share_leases_find(struct bh_share_leases *leases, uint64_t lease);

/* Tell bulkhead-share what the row says that the lease may. */
void bh_share_leases_allow(struct bh_node *node, const struct bh_share_lease_row *row);

/* Each second: ask the driver, of each GPU with shares that are open once, what processes hold on
 * it, and tell bulkhead-share what each lease has and who it is.  Then do what is to be done. */
void bh_share_leases_compare(struct bh_node *node);

/* Its people should know: now, or when ten minutes have passed since they were told the same, or
 * when the daemon listens again. */
void bh_share_leases_notice(struct bh_node *node, struct bh_share_lease_row *row,
                            enum bh_job_notice kind);
void bh_share_leases_tell(struct bh_node *node);

#endif
