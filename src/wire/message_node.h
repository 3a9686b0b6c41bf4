#ifndef BH_WIRE_MESSAGE_NODE_H
#define BH_WIRE_MESSAGE_NODE_H

#include "wire/message.h"
#include "wire/isolation.h"
#include "wire/samples.h"

/* What bulkhead-node says to bulkheadd: the other half of wire/message.h, which includes this. */
enum bh_fault {
    BH_FAULT_NONE, /* HEALTH: it answers; said after the inventory, and when it does again */
    BH_FAULT_LOST,
    BH_FAULT_HUNG,
    BH_FAULT_XID,
    BH_FAULT_HEALTH_RULE, /* what was read of it changed for the worse */
    BH_FAULT_ISOLATION,   /* it answers, and an isolation check failed: no new lease on it */
    BH_FAULTS
};

struct bh_msg_gpu {
    char uuid[BH_UUID_MAX], pci[20];
    char product[64], model[32]; /* model "" when not in the table */
    uint32_t index, minor, memory_mib;
    bool mig_capable, mig_enabled, foreign; /* foreign: instances that are not Bulkhead's */
    bool allowed;                           /* node.conf lets Bulkhead change it */
    uint32_t fault;                         /* enum bh_fault */
    char fence_why[200]; /* why nothing new may be placed on it; "": nothing the node knows */
    uint32_t temperature_c, power_mw, utilisation; /* utilisation % or 255 unknown */
    uint32_t busy_bp, sm_bp, tensor_bp, dram_bp;   /* of 10,000, by GPM */
    uint64_t memory_used_mib, ecc_uncorrected;     /* BH_UNSET, as of the two lines above: unknown */
    uint32_t numa;                                 /* number of its NUMA node + 1; 0 unknown */
    char last_error[BH_GPU_ERROR_MAX];             /* why the last change of it failed; "": it did not */
};

/* A kind of isolation that this node was probed for and does not offer. */
struct bh_msg_grade {
    char grade[4]; /* "D" */
    bool found;    /* what it needs is here; no hardware has shown it to hold */
    char why[200];
};

struct bh_msg_partition {
    uint64_t partition; /* 0: not Bulkhead's */
    char gpu[BH_UUID_MAX], uuid[BH_UUID_MAX];
    char profile[BH_PROFILE_NAME_MAX];
    uint32_t start, gi, ci, memory_mib;
};

struct bh_msg_lease_state {
    uint64_t lease;
    bool frozen;
};

struct bh_msg_inventory {
    char node[64], driver[40], runtime[40];
    uint32_t cpus;
    uint64_t memory_mib;
    uint32_t driver_scrub;                      /* enum bh_driver_scrub */
    uint64_t offer_cpu_milli, offer_memory_mib; /* for jobs together; 0: not limited */
    /* bh_msg_gpu, bh_msg_lease_state, bh_msg_partition.  A lease stands here until its ENDED
     * was acknowledged: one that ended while the daemon was away is not a lost one. */
    struct bh_list gpus, leases, partitions;
    struct bh_list grades; /* bh_msg_grade: not offered, and why */
    struct bh_msg_isolation isolation;
    struct bh_texts image_roots, mount_roots, networks, registries; /* of node.conf */
    bool fetches, unpacks;   /* images of registries; any that are unpacked */
    uint64_t job_memory_mib; /* the most of one job */
    char checkpoint[160];    /* "yes": jobs that hold GPU memory can be suspended; why not; or "" */
};

/* The answer to CARVE .. STOP (a STOP's outcome only says that it was begun; the end
 * comes as ENDED).  Repeated until acknowledged. */
enum { BH_OUTCOME_WHY_MAX = 420 };
struct bh_msg_outcome {
    uint64_t order;
    uint32_t outcome;             /* 0 done, 1 failed, 2 context held, 3 failed, its memory not clean */
    uint32_t rc;                  /* bh_rc when failed; of a START, BH_QUOTA: its scratch is taken */
    uint64_t at_ns, late_ns;      /* late_ns: how long ago that was when this was sent */
    char why[BH_OUTCOME_WHY_MAX]; /* "cause; what to do" */
};

/* What a job sent and received, as it sees it; counted: it had a network, that was read. */
struct bh_msg_carried {
    uint64_t denied_bytes, denied_packets, rx_bytes, rx_packets, tx_bytes, tx_packets;
    bool counted;
};

/* A job's process tree is gone.  Repeated until acknowledged.  A STOP for a lease that the node
 * does not know (its start was refused, or never came) brings one with START_FAILED. */
struct bh_msg_ended {
    uint64_t lease;
    uint32_t cause; /* enum bh_end_cause */
    int32_t exit_status;
    uint64_t started_ns, ended_ns, cpu_ns, memory_peak_bytes;
    uint64_t boot_ns, late_ns; /* of the end: CLOCK_BOOTTIME, or 0; how long ago when sent */
    bool unasked;              /* the node had sent it no signal: the end is its own */
    char why[200];
    struct bh_msg_carried carried;
};

/* What a job sent and received, as it sees it, since it was started. */
struct bh_msg_traffic_item {
    uint64_t lease, job, rx_bytes, rx_packets, tx_bytes, tx_packets;
    uint64_t denied_bytes, denied_packets; /* from it or to it, and not let through */
    bool final;                            /* it has ended */
};

/* With SAMPLES, and with a job's end before ENDED; not repeated. */
struct bh_msg_traffic {
    uint64_t at_ns;
    struct bh_list items; /* struct bh_msg_traffic_item */
};

/* How far the image of a job is that is to be started. */
enum bh_image_stage {
    BH_IMAGE_READY,    /* it is there, and its digest is known */
    BH_IMAGE_FETCHING, /* from a registry */
    BH_IMAGE_CHECKING, /* each blob against its digest, each archive's headers */
    BH_IMAGE_UNPACKING,
    BH_IMAGE_STAGES
};

/* At most one a second for a lease, and READY before the outcome of its START; that is said
 * again on each connection while the job is there. */
struct bh_msg_image {
    uint64_t lease, job;
    uint32_t stage;                   /* enum bh_image_stage */
    uint64_t done_bytes, total_bytes; /* 0: not known */
    char digest[68];                  /* hex of the manifest's, when READY; "": it came to nothing */
};

extern const char *const bh_image_stage_names[BH_IMAGE_STAGES];

/* Whether the driver clears memory that is freed, as its own parameters say. */
enum bh_driver_scrub { BH_DRIVER_SCRUB_UNKNOWN, BH_DRIVER_SCRUB_ON, BH_DRIVER_SCRUB_OFF, BH_DRIVER_SCRUBS };

/* What was done before a partition went to a tenant: nothing; its instance made anew; its memory filled,
 * read back and cleared; nothing more, since that was done for another job, which never had it. */
enum bh_scrub_method { BH_SCRUB_NONE, BH_SCRUB_RECREATE, BH_SCRUB_FILL, BH_SCRUB_EARLIER, BH_SCRUB_METHODS };
enum bh_scrub_result {
    BH_SCRUB_CLEAN,       /* filled, and each sample read back as it was filled */
    BH_SCRUB_UNSAMPLED,   /* nothing was looked at */
    BH_SCRUB_FAILED,      /* what was filled read back otherwise */
    BH_SCRUB_PARTIAL,     /* as clean, of `bytes`: others use the rest, or were promised it */
    BH_SCRUB_INTERRUPTED, /* it did not end; nothing says that the memory is bad */
    BH_SCRUB_RESULTS
};

/* A tenant that may have bytes in the partition's memory: since the last scrub, or in gaps of scrubs. */
struct bh_msg_receipt_from {
    uint32_t tenant; /* 0xffffffff: unknown, it was never scrubbed before */
    uint64_t job;    /* its last one there; 0 none */
};
struct bh_msg_receipt_by {
    uint64_t receipt; /* the scrub that left memory clean, by its number */
};
enum { BH_RECEIPT_FROM_MAX = 8, BH_RECEIPT_BY_MAX = 16 };

/* Sent before the outcome of the order that it was made for.  Repeated until it is acknowledged. */
struct bh_msg_receipt {
    uint64_t order, partition, begun_ns, ended_ns;
    char gpu[BH_UUID_MAX], uuid[BH_UUID_MAX]; /* of the GPU; of the partition */
    char profile[BH_PROFILE_NAME_MAX];
    uint32_t start, tenant; /* whose it is going to be; 0 unknown yet */
    uint64_t job;
    struct bh_msg_receipt_from from[BH_RECEIPT_FROM_MAX];
    uint32_t from_count;
    struct bh_msg_receipt_by by[BH_RECEIPT_BY_MAX]; /* BH_SCRUB_EARLIER: whose result this is */
    uint32_t by_count;
    uint32_t method, result, driver;       /* the enums above */
    uint64_t memory_bytes, bytes, samples; /* of the partition; filled; pages read back, each time */
    uint64_t residue, unfilled;            /* of these held something before; something else after a fill */
    uint32_t tries;                        /* runs of the helper */
    bool beside;                           /* of a share beside which others run: */
    uint32_t neighbors;                    /* so many leases, when it began */
    char why[200];                         /* of one that is not clean */
    uint8_t salt[16];                      /* the daemon's: the digest is shown to more than the receipt */
};

struct bh_msg_health {
    char gpu[BH_UUID_MAX];
    uint32_t fault, xid, gi; /* gi 0xffffffff: the whole GPU */
    uint64_t at_ns;          /* when it happened, or was seen */
    uint64_t partition;      /* the node's partition that is that instance; 0: none */
    uint32_t recovery;       /* enum bh_gpu_recovery as the driver says; others: not known */
    uint32_t sign;           /* enum bh_health_rule */
    char why[200];
};

extern const char *const bh_driver_scrub_names[BH_DRIVER_SCRUBS];
extern const char *const bh_scrub_method_names[BH_SCRUB_METHODS];
extern const char *const bh_scrub_result_names[BH_SCRUB_RESULTS];

/* The receipt as JSON has it, too: in the node's journal and the daemon's store. */
extern const struct bh_fields bh_receipt_fields;
extern const struct bh_fields bh_carried_fields; /* what a job's network carried */

/* One thing that was tried or looked at. */
struct bh_msg_check {
    char name[32];
    bool outside;    /* looked at from outside, not tried by the probe */
    uint32_t result; /* enum bh_check_result */
    char answer[64]; /* "EPERM", "3 of 2 descriptors" */
};

/* What a share, or its job, did that its submitter should know; at most every ten minutes a lease. */
enum bh_job_notice {
#define BH_JOB_NOTICE(id, number, name, sentence) BH_JOB_NOTICE_##id = number,
#include "tables/job_notices.tbl"
#undef BH_JOB_NOTICE
    BH_JOB_NOTICES
};

struct bh_msg_synced {
    uint32_t ends; /* reported before it; what else is known runs on */
};
struct bh_msg_marks {
    uint64_t changes; /* of its ownership maps, ever: with INVENTORY, and before an OUTCOME */
};
struct bh_msg_notice {
    uint64_t lease, at_ns;
    uint32_t kind, count; /* enum bh_job_notice; how often since it was said last */
};

extern const char *const bh_job_notice_names[BH_JOB_NOTICES];
extern const char *const bh_job_notice_sentences[BH_JOB_NOTICES];

/* What came of a VERIFY, or of a look that the node had by itself (request 0). */
struct bh_msg_verdict {
    uint64_t request, lease, at_ns;
    uint64_t retry_ns; /* when the node tries again by itself; 0: it does not */
    char cause[16];    /* "start", "driver", "sample", "asked", "again" */
    uint32_t result;   /* enum bh_check_result: the worst of all */
    uint32_t tried, skipped;
    char why[200];         /* when not: the first that did not, or what hindered it */
    struct bh_list checks; /* struct bh_msg_check */
};

#endif
