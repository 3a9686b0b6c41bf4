#ifndef BH_WIRE_MESSAGE_H
#define BH_WIRE_MESSAGE_H

#include "base/fields.h"
#include "base/err.h"
#include "model/network.h"

/* Messages between bulkheadd and bulkhead-node, as plain structs with a
 * description each; wire/frame.h makes bytes of them.  tables/messages.tbl lists
 * them with their direction.  A message or a field is only ever added at a new
 * number; BH_WIRE_VERSION changes when an old one would be misread. */

enum {
    BH_WIRE_VERSION = 1,
    BH_UUID_MAX = 48,
    BH_PROFILE_NAME_MAX = 24,
    BH_WIRE_PIECES_MAX = 16,
    BH_WIRE_KEEP_MAX = 4096, /* leases or pieces of one node */
};

enum bh_message_kind {
#define BH_MESSAGE(id, number, type, from, doc) BH_MSG_##id = number,
#include "tables/messages.tbl"
#undef BH_MESSAGE
};

/* ---- bulkheadd to bulkhead-node ---- */

/* First on a connection.  The node answers with INVENTORY and then repeats every
 * ENDED and OUTCOME that was not acknowledged. */
struct bh_msg_hello {
    uint32_t version;
    uint64_t boot;
    char site[64];             /* name of the site, for the node's log */
};

/* Make one piece: a MIG instance with its compute instance, or the GPU as a whole
 * (profile "whole").  Switches the GPU's mode when it is empty and must. */
struct bh_msg_carve {
    uint64_t order, partition;
    char gpu[BH_UUID_MAX];
    char profile[BH_PROFILE_NAME_MAX];
    uint32_t start;
};

struct bh_msg_destroy {
    uint64_t order, partition;
};

struct bh_msg_mount {
    const char *source, *target;
    bool write;
};

struct bh_msg_piece_ref {
    uint64_t partition;
};

/* The network of a job. */
struct bh_msg_network {
    uint32_t mode;             /* enum bh_network_mode; nothing else is said with none */
    uint64_t bandwidth_bps;    /* in each direction; 0: the node's most */
    const char *name;          /* the job's name for its peers; "": none */
    struct bh_texts allow;     /* "10.0.0.0/8 tcp 443"; egress only */
    struct bh_texts deny;      /* prefixes that are refused before */
    struct bh_texts resolvers; /* addresses of DNS servers */
};

/* Run a job on pieces that were carved.  All is resolved; the node still checks it
 * against its own node.conf and refuses what that does not allow (BH_DENIED). */
struct bh_msg_start {
    uint64_t order, lease, job;
    struct bh_texts args, env;
    struct bh_list mounts;     /* struct bh_msg_mount */
    struct bh_msg_piece_ref pieces[BH_WIRE_PIECES_MAX];
    uint32_t piece_count;
    const char *image, *cwd;   /* cwd "": none */
    uint32_t submitter_uid, submitter_gid;
    uint32_t cpu_milli, pids;
    uint32_t gang, member;     /* of so many members, which; gang 0 is 1 */
    uint64_t memory_bytes, scratch_bytes;
    char tenant[120], user[64], sku[64]; /* for the job's environment */
    struct bh_msg_network network;
};

/* SUSPEND: freeze, then read the driver's process list; OUTCOME CONTEXT_HELD and a
 * thawed job when it keeps the GPU.  RESUME: thaw on the same device nodes. */
struct bh_msg_lease {
    uint64_t order, lease;
};

struct bh_msg_stop {
    uint64_t order, lease;
    uint64_t grace_ns;         /* 0: SIGKILL at once */
    uint32_t signal;           /* instead of SIGTERM; 0: SIGTERM */
};

/* The daemon has the outcomes of `order` and the end of `lease` on disk (either may
 * be 0): the node may forget them. */
struct bh_msg_ack {
    uint64_t order, lease;
};

/* Pieces and leases that exist as far as the daemon knows: the node ends and
 * destroys those of its own that are not named.  Sent once after INVENTORY. */
struct bh_msg_keep_item {
    uint64_t id;
};
struct bh_msg_keep {
    struct bh_list leases, pieces; /* struct bh_msg_keep_item */
};

/* ---- bulkhead-node to bulkheadd ---- */

enum bh_fault { BH_FAULT_NONE, BH_FAULT_LOST, BH_FAULT_HUNG, BH_FAULT_XID, BH_FAULTS };

struct bh_msg_gpu {
    char uuid[BH_UUID_MAX], pci[20];
    char product[64], model[32];   /* model "" when not in the table */
    uint32_t index, minor, memory_mib;
    bool mig_capable, mig_enabled, foreign; /* foreign: instances that are not ours */
    bool allowed;                  /* node.conf lets Bulkhead change it */
    uint32_t fault;                /* enum bh_fault */
    uint32_t temperature_c, power_mw, utilisation; /* utilisation % or 255 unknown */
    uint64_t memory_used_mib, ecc_uncorrected;
    uint32_t numa;                 /* number of its NUMA node + 1; 0 unknown */
};

struct bh_msg_piece {
    uint64_t partition;            /* 0: not ours */
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
    uint64_t offer_cpu_milli, offer_memory_mib; /* for jobs together; 0: not limited */
    /* bh_msg_gpu, bh_msg_lease_state, bh_msg_piece.  A lease stands here until its ENDED
     * was acknowledged: one that ended while nobody listened is not a lost one. */
    struct bh_list gpus, leases, pieces;
};

/* The answer to CARVE .. STOP (a STOP's outcome only says that it was begun; the end
 * comes as ENDED).  Repeated until acknowledged. */
struct bh_msg_outcome {
    uint64_t order;
    uint32_t outcome;              /* 0 done, 1 failed, 2 context held */
    uint32_t rc;                   /* bh_rc when failed */
    uint64_t at_ns;
    char why[200];
};

/* A job's process tree is gone.  Repeated until acknowledged.  A STOP for a lease that the
 * node does not know (its start was refused, or never came) brings one, too, with the cause
 * START_FAILED. */
struct bh_msg_ended {
    uint64_t lease;
    uint32_t cause;                /* enum bh_end_cause */
    int32_t exit_status;
    uint64_t started_ns, ended_ns, cpu_ns, memory_peak_bytes;
    bool unasked;                  /* the node had sent it no signal: the end is its own */
    char why[200];
};

struct bh_msg_sample {
    uint64_t lease, cpu_ns, memory_bytes, gpu_memory_mib;
    uint32_t gpu_utilisation;      /* % or 255 unknown */
};

/* Every few seconds while jobs run; lost samples are not repeated. */
struct bh_msg_samples {
    uint64_t at_ns;
    struct bh_list gpus, samples;  /* bh_msg_gpu, bh_msg_sample */
};

/* What a job sent and received, as it sees it, since it was started. */
struct bh_msg_traffic_item {
    uint64_t lease, job, rx_bytes, rx_packets, tx_bytes, tx_packets;
    uint64_t denied_bytes, denied_packets; /* from it or to it, and not let through */
    bool final;                    /* it has ended */
};

/* With SAMPLES, and with a job's end before ENDED; not repeated. */
struct bh_msg_traffic {
    uint64_t at_ns;
    struct bh_list items;          /* struct bh_msg_traffic_item */
};

struct bh_msg_health {
    char gpu[BH_UUID_MAX];
    uint32_t fault, xid, gi;       /* gi 0xffffffff: the whole GPU */
    char why[200];
};

/* The description of a message's struct, or NULL for an unknown number.  Its size is
 * that of the struct in tables/messages.tbl. */
const struct bh_fields *bh_message_fields(uint32_t number);

/* "inventory", for logs; "unknown message" for an unknown number. */
const char *bh_message_name(uint32_t number);

#endif
