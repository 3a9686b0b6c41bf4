#ifndef BH_SHARE_MESSAGE_H
#define BH_SHARE_MESSAGE_H

#include "base/fields.h"
#include "bulkhead/share_page.h"

/* The messages between bulkhead-node and bulkhead-share, in the frames of wire/frame.h.
 * Both ends are the same build, so nothing here is versioned. */

enum { BH_SHARE_UUID_MAX = 48, BH_SHARE_PATH_MAX = 200 };

enum bh_share_message_kind {
#define BH_SHARE_MESSAGE(id, number, type, from, doc) BH_SHARE_MSG_##id = number,
#include "tables/share_messages.tbl"
#undef BH_SHARE_MESSAGE
};

struct bh_share_gpu {
    uint32_t gpu; /* its number among the node's, below 32: leases with the same one
                     takes time slices */
    char uuid[BH_SHARE_UUID_MAX];
    uint64_t cap_bytes;     /* whole units */
    uint64_t context_bytes; /* what each context is charged */
    uint64_t memory_bytes;  /* what the device has */
};

/* Asked again for a lease that is open, it is answered as before. */
struct bh_share_open {
    uint64_t lease;
    char folder[BH_SHARE_PATH_MAX]; /* a folder of root's for this lease: door/ in it is
                                       bound into the job at /run/bulkhead */
    uint32_t weight;                /* parts of 4200 */
    bool hard, latency;
    uint64_t quantum_ns;                            /* of a multiplexed share; 0: it is none */
    bool paused, throttled;                         /* as ALLOW says it */
    uint32_t managed;                               /* enum bh_share_managed */
    struct bh_share_gpu gpus[BH_SHARE_DEVICES_MAX]; /* in the order of CUDA's ordinals */
    uint32_t gpu_count;
};

struct bh_share_close {
    uint64_t lease;
};

struct bh_share_overhead {
    uint64_t lease;
    uint32_t device; /* place in `gpus` */
    uint64_t bytes;  /* that the driver holds for the lease's processes, all of it */
};

struct bh_share_allow {
    uint64_t lease;
    bool paused;    /* its processes are frozen or about to be: no time slice for it, and
                       its answer is not waited for */
    bool throttled; /* a tenth of its weight, and never more */
};

struct bh_share_holder {
    uint64_t lease;
    uint32_t pid; /* on the node */
};

struct bh_share_outcome {
    uint64_t lease;
    uint32_t rc; /* bh_rc */
    char msg[240];
};

struct bh_share_lease_state {
    uint64_t lease, used_bytes[BH_SHARE_DEVICES_MAX], gpu_ns;
    uint64_t granted_ns, at_ns; /* gpu_ns including the present time slice, and when that was, monotonic */
    uint32_t permille;          /* of the last second in which it had its time slice */
    uint32_t weight;            /* as it was opened with: parts of 4200 */
    uint32_t processes, slice;  /* enum bh_time_slice */
    bool stuck;
    bool outdated; /* its processes follow pages of another version, and no time slices */
    /* The same memory as the driver's library of its processes asked for it, and as the driver
     * said it last. */
    uint32_t seen_mib[BH_SHARE_DEVICES_MAX], driver_mib[BH_SHARE_DEVICES_MAX];
    uint32_t seen_kind; /* enum bh_share_seen_kind; NOT: no process has reported */
};

struct bh_share_state {
    struct bh_list leases; /* struct bh_share_lease_state */
};

enum bh_share_notice_kind {
    BH_SHARE_NOTICE_FORGED,    /* its page says what cannot be */
    BH_SHARE_NOTICE_FULL,      /* no slot for one more process */
    BH_SHARE_NOTICE_STRANGER,  /* asked for a slot that is another's, or speaks another version */
    BH_SHARE_NOTICE_STUCK,     /* its time slice does not end: others run beside it */
    BH_SHARE_NOTICE_MORE,      /* the driver holds more for it than its processes reserved */
    BH_SHARE_NOTICE_BYPASS,    /* a process that holds GPU memory has no slot */
    BH_SHARE_NOTICE_OUTDATED,  /* its processes count in pages of another version: none joins */
    BH_SHARE_NOTICE_STATIC,    /* a static program wants the GPU, and cannot join */
    BH_SHARE_NOTICE_UNCOUNTED, /* the driver's library took more than its processes reserved: the
                                  node itself says so, of the counts of a state */
    BH_SHARE_NOTICES
};

struct bh_share_notice {
    uint64_t lease;
    uint32_t kind; /* enum bh_share_notice_kind */
    uint32_t pid;  /* on the node; 0: none in particular */
};

/* The description of a message's struct, or NULL for an unknown number. */
const struct bh_fields *bh_share_message_fields(uint32_t number);

#endif
