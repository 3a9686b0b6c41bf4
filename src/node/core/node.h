#ifndef BH_NODE_CORE_NODE_H
#define BH_NODE_CORE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/time.h"
#include "node/common/conf.h"
#include "node/core/disk_watch.h"
#include "node/core/rootfs.h"
#include "node/core/state.h"
#include "node/gpu/gpu_client.h"
#include "ports/device.h"
#include "ports/runtime.h"
#include "runtime/sealed.h"
#include "wire/frame_io.h"
#include "wire/message.h"

struct bh_checkpoint_runs;
struct bh_helper_sandboxes;
struct bh_handover;
struct bh_reset;
struct bh_scrubs;
struct bh_survey;
struct bh_verify;

/* All that bulkhead-node holds while it runs.  One thread owns it. */

enum { BH_NODE_PATH_MAX = 512, BH_NODE_REPORTED_MAX = 64 };

struct bh_gpu_error {
    char gpu[BH_UUID_MAX]; /* "": free */
    char why[BH_GPU_ERROR_MAX];
};

/* The epochs of the daemon's store that were heard of: node/session/epoch.h. */
struct bh_node_epochs {
    uint32_t ids[BH_WIRE_EPOCHS_MAX];
    uint32_t count;
};

struct bh_health_watch;
struct bh_share_leases;

struct bh_node {
    struct bh_conf conf;
    struct bh_node_state state;
    struct bh_runtime runtime;
    struct bh_sealed_program sealed_runtime;
    int claim_fd;   /* this node's control group (node/core/claim.h); -1: not claimed */
    int barrier_fd; /* eventfd: keepers say that a process 1 waits (node/verify/start_barrier.h) */
    struct bh_device device;
    struct bh_gpu_client *gpus;
    char driver_folder[BH_NODE_PATH_MAX]; /* conf.driver_lib_dir, where it was gathered */
    struct bh_rootfs *rootfs;
    struct bh_networks *networks;

    struct bh_arena *scan_arena;   /* of `inventory` */
    struct bh_inventory inventory; /* as last scanned */
    bool inventory_known;
    uint64_t scans;           /* made for callers that waited */
    struct bh_survey *survey; /* node/placement/survey.h */

    char name[64], boot[40], runtime_version[40];
    char libexec[BH_NODE_PATH_MAX];
    char sandboxes[BH_NODE_PATH_MAX]; /* sandboxes, on a private tmpfs */
    uint32_t caps_major, uvm_major;   /* 0: this machine has none */

    int listener;
    struct {
        int fd;
        uint64_t reached;
    } order_watermark; /* node/orders/order_watermark.h */
    struct bh_node_epochs epochs;
    struct bh_link *link;      /* the daemon's connection, or NULL */
    bool hello_received;       /* HELLO was said on it */
    uint64_t reported_changes; /* of the ownership map, on it */
    bool gpus_unreported;      /* the inventory went without them: no answer from the driver */
    char reported[BH_NODE_REPORTED_MAX][BH_UUID_MAX]; /* the GPUs that it had whole; "" where it had not */
    bh_ns sample_at;                                  /* monotonic */
    struct bh_disk_watch disk_watch;
    struct bh_gpu_error gpu_errors[32]; /* node/core/gpu_error.h */
    struct bh_health_watch *health;
    struct bh_share_leases *share_leases; /* node/share/share_lease.h */

    struct bh_helper_sandboxes *helpers;    /* node/sandbox/helper_sandbox.h */
    struct bh_scrubs *scrubs;               /* node/job/scrub.h */
    struct bh_handover *handover;           /* node/placement/handover.h */
    struct bh_reset *reset;                 /* node/partition/reset.h */
    struct bh_verify *verify;               /* node/verify/verify.h */
    struct bh_checkpoint_runs *checkpoints; /* node/job/checkpoint.h */

    uint64_t orphaned[BH_NODE_PARTITIONS_MAX]; /* partitions that the daemon does not know */
    uint32_t orphaned_count;
    bh_ns refused_log_at;       /* monotonic; when the log last said so, or 0 */
    bh_ns collect_at;           /* monotonic; when to try again */
    uint64_t job_mapping_print; /* node/session/job_mapping.h; 0: nothing was written yet */
};

/* The sooner of two times, 0 being none. */
static inline bh_ns
bh_node_sooner(bh_ns next, bh_ns at)
{
    return at && (!next || at < next) ? at : next;
}

/* Sandboxes of the node itself have numbers that no lease has, counted up from here; those of scrubs and of
 * probes lie apart, so they are never the same.  One that a crash left behind is ended at the next start like
 * any container that is not in the journal. */
#define BH_SCRUB_LEASES (UINT64_C(1) << 62) /* and the partition */
#define BH_PROBE_LEASES (UINT64_C(3) << 61) /* and how many probes there were */

/* Paths of a job: its durable folder, its sandbox and the id of both. */
void bh_node_job_id(uint64_t lease, char ret_id[32]);
void bh_node_job_folder(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX]);
void bh_node_job_bundle(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX]);

/* Send to the daemon when it is connected and greeted; a message that cannot be sent
 * closes the connection (what matters is repeated on the next one). */
void bh_node_send(struct bh_node *node, uint32_t number, const void *message);
void bh_node_disconnect(struct bh_node *node);

/* What holds between two calls of what the node holds itself, and of the tables of its state. */
void bh_node_assert(const struct bh_node *node);

#endif
