#ifndef BH_NODE_CORE_NODE_RECORD_H
#define BH_NODE_CORE_NODE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fields.h"
#include "checkpoint/report.h"
#include "node/common/party.h"
#include "node/core/journal.h"
#include "wire/message.h"

/* What is in the node's journal: records, as canonical JSON. */

enum bh_node_record_kind {
    BH_NODE_RECORD_NONE,
    BH_NODE_RECORD_ORDER,        /* an order was taken and may have been begun */
    BH_NODE_RECORD_OUTCOME,      /* what became of it */
    BH_NODE_RECORD_PARTITION,    /* a partition exists */
    BH_NODE_RECORD_GONE,         /* it does not any more */
    BH_NODE_RECORD_LEASE,        /* a job is being started */
    BH_NODE_RECORD_FORGET_ORDER, /* acknowledged */
    BH_NODE_RECORD_FORGET_LEASE,
    BH_NODE_RECORD_STOPPING,       /* a job was sent its first signal to end; `why`: the node stops it by
                            itself, and `outcome` is the cause of its end then (0, of before
                            there were two: OVER_CAP) */
    BH_NODE_RECORD_SUSPENDED,      /* a job is frozen and was seen to hold no GPU context */
    BH_NODE_RECORD_RESUMED,        /* it holds its partitions again: it is about to be thawed */
    BH_NODE_RECORD_OWNER,          /* whose the bytes of memory units of a GPU are */
    BH_NODE_RECORD_RECEIPT,        /* a partition was scrubbed, or that failed */
    BH_NODE_RECORD_FORGET_RECEIPT, /* acknowledged */
    BH_NODE_RECORD_CHECKPOINTED,   /* the GPU memory of a job's processes is put aside, or may be */
    BH_NODE_RECORD_RESTORED,       /* it is not any more */
    BH_NODE_RECORD_REACHED, /* the highest order that was taken; `generation`: in which epoch; `changes`:
                             * bh_node_state.changes */
    BH_NODE_RECORD_KINDS
};

/* A partition as of its carve or lease. */
struct bh_node_partition {
    uint64_t partition;
    char gpu[BH_UUID_MAX], uuid[BH_UUID_MAX];
    char profile[BH_PROFILE_NAME_MAX];
    uint32_t start, gi, ci, memory_mib; /* gi 0xffffffff: the whole GPU */
    uint32_t minor, gi_minor, ci_minor; /* device minors */
    uint32_t units;                     /* of memory, bit u for unit u; 0: not noted */
    uint64_t cap_bytes, context_bytes;  /* of a share: bh_msg_carve */
    uint32_t share_weight, share_flags; /* likewise; node/placement/share_slot.h */
    uint32_t cleared_for;               /* of a share: the tenant that it was just scrubbed for, until
                                           a lease has memory of the GPU */
};

#define BH_WHOLE_GPU UINT32_MAX
#define BH_SHARE_GI UINT32_C(0xffffff00) /* and its slot, of a share; below are numbers of GPU instances */

/* Bytes that a fill did not reach: the driver kept them for itself or for the helper's context, or no fill
 * was made.  A partition of the same geometry does not get them either; one of another geometry may. */
struct bh_ownership_gap {
    char profile[BH_PROFILE_NAME_MAX]; /* of the partition that was filled, or BH_NO_SHAPE: unknown */
    uint32_t start;
    /* The tenants whose bytes may be there, each once; when there are too many, the last one is unknown. */
    struct bh_msg_receipt_from from[BH_RECEIPT_FROM_MAX];
    uint32_t from_count;
};

#define BH_NO_SHAPE "unknown"
#define BH_NO_SLOT UINT32_MAX /* of a lease that was only ever stopped */

/* Fields that a kind does not use are zero. */
struct bh_node_record {
    enum bh_node_record_kind kind;
    uint64_t order, lease, job, generation, changes;
    uint32_t message;                   /* of the order */
    struct bh_node_partition partition; /* ORDER of a carve or destroy, PARTITION, GONE, RECEIPT;
                                   OWNER: gpu and units */
    /* LEASE; ORDER of a carve: instances on that GPU that this node did not make */
    struct bh_node_partition lent[BH_WIRE_PARTITIONS_MAX];
    uint32_t lent_count;
    bool begun;           /* ORDER of a carve: the driver may have been asked */
    uint32_t slot;        /* LEASE: range of user ids, or BH_NO_SLOT */
    char boot[40];        /* LEASE: the kernel's boot id */
    uint32_t outcome, rc; /* OUTCOME; STOPPING: outcome */
    uint64_t at_ns;
    char why[BH_OUTCOME_WHY_MAX];
    uint32_t tenant;               /* LEASE, OWNER; ORDER of a carve: the tenant that gets it */
    char party[BH_PARTY_SIZE];     /* LEASE: of that tenant; "" of before it was noted */
    uint32_t boundary;             /* LEASE: enum bh_boundary, as ordered; UNSET of before there was one */
    bool clean, failed;            /* OWNER */
    bool beside;                   /* OWNER: beside those whose they were already */
    struct bh_ownership_gap gap;   /* OWNER; no profile: as it was */
    struct bh_msg_receipt receipt; /* RECEIPT */
    struct bh_checkpoint_pid pids[BH_CHECKPOINT_PIDS_MAX]; /* CHECKPOINTED */
    uint32_t pid_count;
};

/* Append a note to the journal, not yet durable. */
BH_MUST_USE bh_rc bh_node_record_append(struct bh_order_journal *journal, const struct bh_node_record *record,
                                        struct bh_err *err);

/* The note in a journal entry. */
BH_MUST_USE bh_rc bh_node_record_decode(const char *payload, size_t length, struct bh_node_record *ret_record,
                                        struct bh_err *err);

#endif
