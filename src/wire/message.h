#ifndef BH_WIRE_MESSAGE_H
#define BH_WIRE_MESSAGE_H

#include "base/fields.h"
#include "base/err.h"
#include "model/network.h"

/* Messages between bulkheadd and bulkhead-node, as plain structs with a
 * description each; wire/frame.h makes bytes of them.  tables/messages.tbl lists
 * them with their direction.  BH_WIRE_VERSION changes whenever one of them does: both sides
 * are built from one tree, and builds that differ say so. */

enum {
    BH_WIRE_VERSION = 12,
    BH_UUID_MAX = 48,
    BH_PROFILE_NAME_MAX = 24,
    BH_WIRE_PARTITIONS_MAX = 16,
    BH_WIRE_RETAIN_MAX = 4096, /* leases or partitions of one node */
    BH_GPU_ERROR_MAX = 420,
};

/* What the node says stands in wire/message_node.h. */
enum bh_message_kind {
#define BH_MESSAGE(id, number, type, from, doc) BH_MSG_##id = number,
#include "tables/messages.tbl"
#undef BH_MESSAGE
};

/* ---- bulkheadd to bulkhead-node ---- */

/* An epoch of the daemon's store (ADR 0060): the first numbers that it may give out. */
enum { BH_WIRE_EPOCHS_MAX = 32 };
struct bh_msg_epoch {
    uint32_t id;
    uint64_t job, order, lease, partition;
};

/* First on a connection.  The node answers with INVENTORY, then repeats every OUTCOME and
 * ENDED that was not acknowledged, and then says SETTLED: it is up from there on. */
struct bh_msg_hello {
    uint32_t version;
    uint64_t boot;
    struct bh_list epochs; /* struct bh_msg_epoch: the last ones, the present one last */
    char site[64];         /* name of the site, for the node's log */
};

/* The file of a job's member in the log folder, which both sides must agree on: "12.log",
 * "12.1.log"; with its epoch "12-0af31c55.log". */
enum { BH_LOG_NAME_MAX = 64 };
void bh_job_log_name(uint64_t job, uint32_t member, uint32_t epoch, char ret_name[BH_LOG_NAME_MAX]);

/* Make one partition: a MIG instance with its compute instance, the GPU as a whole
 * (profile "whole"), or a share of it (model/share.h).  Switches the GPU's mode when it is
 * empty and must. */
struct bh_msg_carve {
    uint64_t order, partition;
    char gpu[BH_UUID_MAX];
    char profile[BH_PROFILE_NAME_MAX];
    uint32_t start;
    uint32_t tenant; /* whose it is going to be; 0: unknown yet */
    uint64_t job;    /* 0: none yet */
    /* Of a share alone; `start` is its slot. */
    uint64_t cap_bytes;     /* of GPU memory, whole granules of 2 MiB */
    uint64_t context_bytes; /* beside the cap, for one context */
    uint32_t weight;        /* parts of 4200 of the GPU's time */
    bool hard;              /* never more than that */
    bool latency;           /* its turn comes sooner */
    bool multiplexed;       /* the whole GPU in turns */
};

struct bh_msg_destroy {
    uint64_t order, partition;
    uint32_t tenant; /* which it makes room for; 0: none yet */
};

struct bh_msg_mount {
    const char *source, *target;
    bool write;
};

struct bh_msg_partition_ref {
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
    BH_STDIO_NONE,     /* an empty input */
    BH_STDIO_PIPE,     /* input from attached clients */
    BH_STDIO_TERMINAL, /* a terminal: input and output from and to attached clients */
    BH_STDIOS
};

/* Run a job on partitions that were carved.  All is resolved; the node still checks it
 * against its own node.conf and refuses what that does not allow (BH_DENIED). */
struct bh_msg_start {
    uint64_t order, lease, job;
    uint32_t epoch; /* that the job was submitted in, for its log's name; 0: none */
    struct bh_texts args, env;
    struct bh_list mounts; /* struct bh_msg_mount */
    struct bh_msg_partition_ref partitions[BH_WIRE_PARTITIONS_MAX];
    uint32_t partition_count;
    const char *image, *cwd; /* cwd "": none */
    uint32_t submitter_uid, submitter_gid;
    uint32_t cpu_milli, pids;
    uint32_t gang, member; /* of so many members, which; gang 0 is 1 */
    uint64_t memory_bytes, scratch_bytes;
    uint32_t tenant_id;                  /* the tenant of `tenant` */
    char tenant[120], user[64], sku[64]; /* for the job's environment */
    struct bh_msg_network network;
    uint32_t stdio;     /* enum bh_stdio */
    uint32_t managed;   /* enum bh_managed, where it has shares */
    uint32_t over_cap;  /* enum bh_over_cap, likewise */
    uint32_t over_time; /* enum bh_over_time, likewise */
    uint32_t boundary;  /* enum bh_boundary: the strongest of the tenant and those above */
};

/* SUSPEND: freeze, then read the driver's process list; OUTCOME CONTEXT_HELD and a
 * thawed job when it keeps the GPU.  RESUME: thaw on the same device nodes. */
struct bh_msg_lease {
    uint64_t order, lease;
};

struct bh_msg_stop {
    uint64_t order, lease;
    uint64_t grace_ns; /* 0: SIGKILL at once */
    uint32_t signal;   /* instead of SIGTERM; 0: SIGTERM */
};

/* RESET: refused while the GPU is in use; BH_UNAVAILABLE where it cannot be done from here.
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
struct bh_msg_retain_item {
    uint64_t id;
};
struct bh_msg_retain {
    struct bh_list leases, partitions; /* struct bh_msg_retain_item */
    uint64_t marks; /* the most that the node's MARKS ever said; a node that knows less was put back */
};

/* ---- bulkheadd to bulkhead-node, on a stream's own connection ---- */

enum bh_stream_what { BH_STREAM_EXEC, BH_STREAM_ATTACH, BH_STREAM_FORWARD, BH_STREAM_WATCH, BH_STREAM_WHATS };

/* The one message on a connection to `<socket>.streams`; what follows in both directions are
 * the frames of wire/stream.h.  WATCH carries nothing and ends with the job. */
struct bh_msg_stream {
    uint64_t lease;
    uint32_t what; /* enum bh_stream_what */
    bool tty, input;
    uint32_t rows, columns; /* of the terminal at first; 0: not known */
    uint32_t port;          /* FORWARD: of the job's loopback */
    struct bh_texts args;   /* EXEC */
};

/* Check the isolation: of a running lease from outside, and by a probe in a sandbox of its kind; of
 * the node (lease 0) by the probe alone.  Not an order: it is not noted, and not repeated. */
struct bh_msg_verify {
    uint64_t request, lease;
};

/* The description of a message's struct, or NULL for an unknown number.  Its size is
 * that of the struct in tables/messages.tbl. */
const struct bh_fields *bh_message_fields(uint32_t number);

/* "inventory", for logs; "unknown message" for an unknown number. */
const char *bh_message_name(uint32_t number);

#include "wire/message_node.h"

#endif
