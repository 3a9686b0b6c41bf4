#ifndef BH_NODE_CORE_STATE_H
#define BH_NODE_CORE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"
#include "node/core/node_record.h"
#include "node/core/ownership_map.h"
#include "node/core/pending_notice.h"
#include "wire/message.h"

/* What the node knows, rebuilt from its journal at start: orders that were not
 * acknowledged, partitions that it made, jobs that it started. */

#define BH_CHANGES_MAX (UINT64_C(1) << 62) /* of the ownership map: more than can ever be made */

enum { BH_ORDERS_MAX = 65536, BH_NODE_PARTITIONS_MAX = 4096, BH_JOBS_MAX = 4096, BH_RECEIPTS_MAX = 4096 };

struct bh_order {
    struct bh_node_record record; /* as taken */
    bool done;
    bool unsaved;                  /* the outcome could not be noted yet */
    struct bh_msg_outcome outcome; /* when done */
};

/* The notices of a job's isolation. */
enum bh_lease_notice { BH_LEASE_UNVERIFIED, BH_LEASE_VERIFIED, BH_LEASE_STOPPED, BH_LEASE_NOTICES };

/* The state of a lease's isolation checks; node/verify/lease_check.h. */
struct bh_lease_isolation {
    bool unverified;   /* the last one did not pass */
    bool unknown;      /* none was made since this node started */
    uint32_t rechecks; /* made by the node since it was verified last */
    bh_ns at;          /* monotonic; of the next, or 0 */
    struct bh_pending_notice pending_notices[BH_LEASE_NOTICES];
    char why[200];
    char charge[200]; /* what it is ended for at the next turn; trespass.h.  "": nothing */
};

struct bh_job {
    struct bh_node_record record; /* lease, job, slot, lent partitions, boot */
    bool running, frozen, ended;  /* running: its keeper was seen alive */
    bool asked;                   /* a signal to end was sent, or may have been */
    bool suspended;               /* noted so: frozen, and seen without a GPU context */
    bool checkpointed;            /* noted so: GPU memory of these processes is put aside,
                              or may be (checkpoint.h) */
    struct bh_checkpoint_pid checkpointed_pids[BH_CHECKPOINT_PIDS_MAX];
    uint32_t checkpointed_count;
    char unrestored[200];     /* why it could not be given back; "": it was */
    bool dying;               /* its end is under way: a process does not go */
    bool sealed;              /* it mounts nothing that others might see, too: known to be so */
    bool unwanted;            /* the daemon does not know it: forget it at its end */
    int pidfd;                /* of the keeper; -1: none */
    bh_ns term_at;            /* monotonic; term_signal is still to be sent, or 0 */
    int term_signal;          /* SIGTERM, or what it writes a checkpoint at */
    bh_ns kill_at;            /* monotonic; 0: no stop under way */
    bh_ns check_at;           /* monotonic; 0: no need to look for the keeper */
    struct bh_unpack *unpack; /* its image is being unpacked, or NULL (unpack.h) */
    struct bh_msg_ended end;  /* when ended */
    bh_ns barrier_at;         /* monotonic; when it is inspected next at the start barrier, or 0 */
    bh_ns barrier_until;      /* monotonic; not ready by then: it never will be */
    uint64_t start_order;     /* START that is answered after the inspection, or 0 */
    bool unbuilt;             /* this node started it, and its command has not begun */
    char failed_check[200];   /* the isolation check that failed; "": none did */
    uint32_t barrier_checks;  /* checks at the start barrier that were inconclusive */
    struct bh_lease_isolation isolation;
    char stop_why[200];  /* why the node stops it by itself; "": it does not */
    uint32_t stop_cause; /* enum bh_end_cause of that */
    struct {
        uint64_t memory_bytes;
        uint32_t pids;
    } ordered;              /* 0: no longer known */
    uint64_t scratch_bytes; /* likewise */
};

struct bh_node_state {
    struct bh_order_journal *journal;
    struct bh_order *orders;
    struct bh_node_partition *partitions;
    struct bh_job *jobs;
    uint32_t order_count, partition_count, job_count;
    uint32_t order_capacity, partition_capacity, job_capacity;
    struct bh_ownership_map ownership; /* whose bytes lie in which memory */
    struct bh_msg_receipt *receipts;   /* not yet acknowledged */
    uint32_t receipt_count, receipt_capacity;
    uint64_t reached, generation; /* the highest order that was taken, and in which epoch
                                   * (node/orders/order_watermark.h); 0: none was begun */
    uint64_t changes; /* of the ownership map, ever: never less than before, unless the folder was put back */
    bool unsaved;     /* perhaps an order is */
    bh_ns save_at;    /* monotonic; not tried again before */
    uint64_t compact_above; /* journal bytes; 0: the usual */
};

/* Open the journal in `dir` and rebuild the state.  BH_INVALID: it is damaged, or has a record that no node
 * writes (node/core/state_check.h). */
BH_MUST_USE bh_rc bh_state_open(struct bh_node_state *state, const char *dir, struct bh_err *err);
void bh_state_close(struct bh_node_state *state);

/* Journal a record and apply it.  Durable after bh_state_sync.  BH_FULL, BH_IO: the
 * state is as it was. */
BH_MUST_USE bh_rc bh_state_record(struct bh_node_state *state, const struct bh_node_record *record,
                                  struct bh_err *err);
BH_MUST_USE bh_rc bh_state_sync(struct bh_node_state *state, struct bh_err *err);

/* Note that the memory of all partitions that the lease was lent is its tenant's from now on.
 */
BH_MUST_USE bh_rc bh_state_record_owner(struct bh_node_state *state, const struct bh_node_record *lease,
                                        struct bh_err *err);

/* Note that the tenants of all GPU memory are unknown, and begin a new epoch, in which `reached` is the
 * highest order and the ownership map has more than `changes` changes. */
BH_MUST_USE bh_rc bh_state_forget_owners(struct bh_node_state *state, uint64_t reached, uint64_t changes,
                                         struct bh_err *err);

/* Before an order is noted that may wait: room for it, its outcome, and what must always be
 * noted.  BH_FULL. */
BH_MUST_USE bh_rc bh_state_reserve(struct bh_node_state *state, struct bh_err *err);

/* Apply the outcome of an order although it could not be noted; and note it later. */
void bh_state_remember(struct bh_node_state *state, const struct bh_node_record *outcome);

/* By time: note such outcomes, tried once a second while the disk has no room, and bh_order_journal_tick.
 * `ret_next`: when to come again, also after an error, or 0. */
BH_MUST_USE bh_rc bh_state_tick(struct bh_node_state *state, bh_ns now, bh_ns *ret_next, struct bh_err *err);

/* Rewrite the journal as the shortest one that gives this state, when it has grown.  A
 * failure costs nothing but room: it is tried again when the journal has grown again. */
BH_MUST_USE bh_rc bh_state_compact(struct bh_node_state *state, struct bh_err *err);

/* By id, or NULL.  Pointers hold until the next record. */
struct bh_order *bh_state_order(const struct bh_node_state *state, uint64_t order);
struct bh_node_partition *bh_state_partition(const struct bh_node_state *state, uint64_t partition);
struct bh_job *bh_state_job(const struct bh_node_state *state, uint64_t lease);

/* The partition that is this GPU instance, or NULL. */
struct bh_node_partition *bh_state_partition_at(const struct bh_node_state *state, const char *gpu,
                                                uint32_t gi);

/* Ranges of user ids that others than jobs have. */
enum { BH_SLOTS_MAX = 16 };
struct bh_slots {
    uint32_t slot[BH_SLOTS_MAX], count;
};

/* The lowest range of user ids below `ranges` that neither a job nor one of `others` has, or
 * `ranges`. */
uint32_t bh_state_free_slot(const struct bh_node_state *state, uint32_t ranges,
                            const struct bh_slots *others);

#endif
