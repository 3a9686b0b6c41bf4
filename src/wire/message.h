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
    BH_WIRE_VERSION = 2,
    BH_UUID_MAX = 48,
    BH_PROFILE_NAME_MAX = 24,
    BH_WIRE_PIECES_MAX = 16,
    BH_WIRE_KEEP_MAX = 4096, /* leases or pieces of one node */
    BH_TROUBLE_MAX = 420,
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
    uint32_t tenant;           /* whose it is going to be; 0: nobody's yet */
    uint64_t job;              /* 0: none yet */
};

struct bh_msg_destroy {
    uint64_t order, partition;
    uint32_t tenant;           /* whom it makes room for; 0: nobody yet */
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

/* What a job's standard streams are, apart from the log that has all its output. */
enum bh_stdio {
    BH_STDIO_NONE,             /* an empty input */
    BH_STDIO_PIPE,             /* input from who is attached */
    BH_STDIO_TERMINAL,         /* a terminal: input and output from and to who is attached */
    BH_STDIOS
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
    uint32_t tenant_id;                  /* the tenant of `tenant` */
    char tenant[120], user[64], sku[64]; /* for the job's environment */
    struct bh_msg_network network;
    uint32_t stdio;            /* enum bh_stdio */
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

/* RESET: refused while anybody uses the GPU; BH_UNAVAILABLE where it cannot be done from here.
 * TEST: BH_IO where the GPU does not answer or still wants a reset. */
struct bh_msg_gpu_order {
    uint64_t order;
    char gpu[BH_UUID_MAX];
};

/* The daemon has the outcomes of `order`, the end of `lease` and the receipt made for the
 * order `receipt` on disk (each may be 0): the node may forget them. */
struct bh_msg_ack {
    uint64_t order, lease, receipt;
};

/* Pieces and leases that exist as far as the daemon knows: the node ends and
 * destroys those of its own that are not named.  Sent once after INVENTORY. */
struct bh_msg_keep_item {
    uint64_t id;
};
struct bh_msg_keep {
    struct bh_list leases, pieces; /* struct bh_msg_keep_item */
};

/* ---- bulkheadd to bulkhead-node, on a stream's own connection ---- */

enum bh_stream_what { BH_STREAM_EXEC, BH_STREAM_ATTACH, BH_STREAM_FORWARD, BH_STREAM_WATCH,
                      BH_STREAM_WHATS };

/* The one message on a connection to `<socket>.streams`; what follows in both directions are
 * the frames of wire/stream.h.  WATCH carries nothing and ends with the job. */
struct bh_msg_stream {
    uint64_t lease;
    uint32_t what;             /* enum bh_stream_what */
    bool tty, input;
    uint32_t rows, columns;    /* of the terminal at first; 0: not known */
    uint32_t port;             /* FORWARD: of the job's loopback */
    struct bh_texts args;      /* EXEC */
};

/* Try the walls: of a running lease from outside, and by a probe in a sandbox of its kind; of
 * the node (lease 0) by the probe alone.  Not an order: it is not noted, and not repeated. */
struct bh_msg_verify {
    uint64_t request, lease;
};

/* ---- bulkhead-node to bulkheadd ---- */

enum bh_fault {
    BH_FAULT_NONE, /* HEALTH: it answers; said after the inventory, and when it does again */
    BH_FAULT_LOST,
    BH_FAULT_HUNG,
    BH_FAULT_XID,
    BH_FAULT_SIGN,      /* what was read of it changed for the worse */
    BH_FAULT_ISOLATION, /* a wall between jobs did not hold when it was tried */
    BH_FAULTS
};

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
    char trouble[BH_TROUBLE_MAX];  /* why the last change of it failed; "": it did not */
};

/* A kind of isolation that this node was probed for and does not offer. */
struct bh_msg_grade {
    char grade[4];                 /* "D" */
    bool found;                    /* what it needs is here; no hardware has shown it to hold */
    char why[200];
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
    uint32_t driver_scrub;                      /* enum bh_driver_scrub */
    uint64_t offer_cpu_milli, offer_memory_mib; /* for jobs together; 0: not limited */
    /* bh_msg_gpu, bh_msg_lease_state, bh_msg_piece.  A lease stands here until its ENDED
     * was acknowledged: one that ended while nobody listened is not a lost one. */
    struct bh_list gpus, leases, pieces;
    struct bh_list grades;     /* bh_msg_grade: not offered, and why */
};

/* The answer to CARVE .. STOP (a STOP's outcome only says that it was begun; the end
 * comes as ENDED).  Repeated until acknowledged. */
struct bh_msg_outcome {
    uint64_t order;
    uint32_t outcome;              /* 0 done, 1 failed, 2 context held, 3 failed, and the
                                      piece stands with memory that is not clean */
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

/* Whether the driver clears memory that is freed, as its own parameters say. */
enum bh_driver_scrub {
    BH_DRIVER_SCRUB_UNKNOWN,
    BH_DRIVER_SCRUB_ON,
    BH_DRIVER_SCRUB_OFF,
    BH_DRIVER_SCRUBS
};

/* What was done before a piece went to a tenant: its memory filled, read back and cleared;
 * or its instance made anew and no more, where no libcuda.so.1 is; or, on a whole GPU
 * without one, nothing. */
enum bh_scrub_method { BH_SCRUB_NONE, BH_SCRUB_RECREATE, BH_SCRUB_FILL, BH_SCRUB_METHODS };
enum bh_scrub_result {
    BH_SCRUB_CLEAN,     /* filled, and each sample read back as it was filled */
    BH_SCRUB_UNSAMPLED, /* nothing was looked at */
    BH_SCRUB_FAILED,    /* what was filled read back otherwise, or the helper failed */
    BH_SCRUB_RESULTS
};

/* Who had memory of the piece since it was last clean. */
struct bh_msg_receipt_from {
    uint32_t tenant; /* 0xffffffff: unknown, it was never scrubbed before */
    uint64_t job;    /* its last one there; 0 none */
};
enum { BH_RECEIPT_FROM_MAX = 8 };

/* Sent before the outcome of the order that it was made for.  Repeated until it is
 * acknowledged. */
struct bh_msg_receipt {
    uint64_t order, partition;
    char gpu[BH_UUID_MAX], uuid[BH_UUID_MAX]; /* of the GPU; of the piece */
    char profile[BH_PROFILE_NAME_MAX];
    uint32_t start;
    uint32_t tenant; /* whose it is going to be; 0 nobody's yet */
    uint64_t job;
    struct bh_msg_receipt_from from[BH_RECEIPT_FROM_MAX];
    uint32_t from_count;
    uint64_t begun_ns, ended_ns;
    uint32_t method, result, driver; /* the enums above */
    uint64_t memory_bytes, bytes;    /* of the piece; filled */
    uint64_t samples;                /* pages read back, each time */
    uint64_t residue;                /* of these held something before */
    uint64_t unfilled;               /* or something else than the fill after it */
    uint32_t tries;                  /* runs of the helper */
    char why[200];                   /* of one that failed or was not sampled */
};

struct bh_msg_health {
    char gpu[BH_UUID_MAX];
    uint32_t fault, xid, gi;       /* gi 0xffffffff: the whole GPU */
    uint64_t at_ns;                /* when it happened, or was seen */
    uint64_t partition;            /* our piece that is that instance; 0: none */
    uint32_t recovery;             /* enum bh_gpu_recovery as the driver says; others: not known */
    uint32_t sign;                 /* enum bh_sign */
    char why[200];
};

extern const char *const bh_driver_scrub_names[BH_DRIVER_SCRUBS];
extern const char *const bh_scrub_method_names[BH_SCRUB_METHODS];
extern const char *const bh_scrub_result_names[BH_SCRUB_RESULTS];

/* The receipt as JSON has it, too: in the node's journal and the daemon's store. */
extern const struct bh_fields bh_receipt_fields;

/* One thing that was tried or looked at. */
struct bh_msg_check {
    char name[32];
    bool outside;                  /* looked at from outside, not tried by the probe */
    bool held;
    char answer[64];               /* "EPERM", "3 of 2 descriptors" */
};

/* What came of a VERIFY, or of a look that the node had by itself (request 0). */
struct bh_msg_verdict {
    uint64_t request, lease, at_ns;
    char cause[16];                /* "start", "driver", "sample", "asked", "lease" */
    bool held;                     /* all of them */
    uint32_t tried, skipped;
    char why[200];                 /* when not: the first that did not, or what hindered it */
    struct bh_list checks;         /* struct bh_msg_check */
};

/* The description of a message's struct, or NULL for an unknown number.  Its size is
 * that of the struct in tables/messages.tbl. */
const struct bh_fields *bh_message_fields(uint32_t number);

/* "inventory", for logs; "unknown message" for an unknown number. */
const char *bh_message_name(uint32_t number);

#endif
