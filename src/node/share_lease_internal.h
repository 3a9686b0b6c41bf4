#ifndef BH_NODE_SHARE_LEASE_INTERNAL_H
#define BH_NODE_SHARE_LEASE_INTERNAL_H

#include "node/node.h"
#include "node/share.h"

/* What the files node/share_*.c know of the leases whose shares are open.  Which ones are follows
 * from the node's journal alone: after a crash the same ones are opened again. */

struct bh_share_lease_row {
    uint64_t lease;
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

/* Each second: ask the driver, of each GPU with shares that are open once, what processes hold on
 * it, and tell bulkhead-share what each lease has. */
void bh_share_leases_compare(struct bh_node *node);

#endif
