#ifndef BH_NODE_SHARE_SHARE_LEASE_INTERNAL_H
#define BH_NODE_SHARE_SHARE_LEASE_INTERNAL_H

#include "node/core/node.h"
#include "node/core/pending_notice.h"
#include "node/share/share.h"
#include "node/share/share_over.h"
#include "node/share/share_time.h"

/* What the files node/share_*.c know of the leases whose shares are open.  Which ones are follows
 * from the node's journal alone: after a crash the same ones are opened again. */

/* GPU memory as the driver says it, of the GPU where it is most beyond what is allowed. */
struct bh_share_observed {
    bool seen;
    char gpu[BH_UUID_MAX];
    uint64_t bytes, allowed_bytes;
};

struct bh_share_lease_row {
    uint64_t lease;
    bool paused, throttled;
    struct bh_share_observed observed;
    struct bh_share_over over;
    struct bh_share_granted granted;
    struct bh_share_time time[BH_SHARE_DEVICES_MAX];
    uint32_t out_of_slice; /* devices on which it was just found to run out of its turns, a bit each */
    struct bh_pending_notice pending_notices[BH_JOB_NOTICES];
};

struct bh_share_leases {
    struct bh_share_host *host;
    struct bh_share_lease_row rows[BH_SHARE_LEASES_MAX];
    uint32_t count;
    bh_ns tried_at;    /* monotonic; when leases of before were asked for last */
    bh_ns compare_at;  /* monotonic; when the driver is asked next */
    bh_ns compared_at; /* when it was asked last */
    bool no_samples;   /* the log says that GPU time of processes is not seen */
};

/* NULL: its share is not open. */
struct bh_share_lease_row *bh_share_leases_find(struct bh_share_leases *leases, uint64_t lease);

/* Send bulkhead-share the limits of the row. */
void bh_share_leases_allow(struct bh_node *node, const struct bh_share_lease_row *row);

/* What the processes of a lease have of a GPU, as the driver says. */
struct bh_share_use {
    struct bh_share_lease_row *row;
    uint32_t device; /* of the lease */
    uint64_t bytes;
    uint32_t busy_percent;
};

/* Which processes kept a GPU busy since it was asked last. */
struct bh_share_busy {
    bool known; /* else nothing is judged */
    struct bh_device_samples samples;
};

/* Notify the submitter: now, or when ten minutes have passed since the last notice of that kind, or when the
 * daemon is connected again. */
void bh_share_leases_notice(struct bh_node *node, struct bh_share_lease_row *row, enum bh_job_notice kind);
void bh_share_leases_notify(struct bh_node *node);

/* Open those of jobs that a node before this one started; close those of jobs that have ended. */
void bh_share_leases_open_adopted(struct bh_node *node);
void bh_share_leases_close_ended(struct bh_node *node);

#endif
