#ifndef BH_ENGINE_STATE_FAULT_H
#define BH_ENGINE_STATE_FAULT_H

#include "model/health.h"
#include "model/ids.h"

/* What the engine hears of GPUs that have faults, and of work that operators keep off; plain
 * values, as those of engine/state/event.h. */

enum bh_outcome_kind {
    BH_OUTCOME_OK,
    BH_OUTCOME_FAILED,
    BH_OUTCOME_CONTEXT_HELD,
    BH_OUTCOME_UNCLEAN, /* CARVED, DESTROYED: failed; the partition stands, and its memory is not clean */
    BH_OUTCOMES
};

/* A fault of a GPU, with what is to be done at it (model/health.h): decided before, so that
 * replay does the same when the tables have changed. */
struct bh_ev_health {
    bh_gpu_id gpu;
    bh_partition_id partition; /* whose lease ends, for BH_ENDS_INSTANCE; 0: none */
    enum bh_fault_ends ends;
    enum bh_fault_then then;
    uint32_t xid, sign; /* what it was: shown, and not looked at */
    uint32_t recovery;  /* enum bh_gpu_recovery as the driver said, others: not known */
};

/* How a RESET or a TEST came out. */
struct bh_ev_serviced {
    bh_gpu_id gpu;
    enum bh_outcome_kind outcome;
    uint32_t rc; /* BH_UNAVAILABLE: it cannot be reset from here */
};

/* What people say of new work on a GPU or a node, beside the site file's `cordoned`. */
enum bh_held {
    BH_HELD_NOT,
    BH_HELD_CORDONED,  /* no new work */
    BH_HELD_DRAINING,  /* the same, so that it gets empty */
    BH_HELD_DRAIN_NOW, /* and what runs ends, or is queued again, by its contract */
    BH_HELDS
};
extern const char *const bh_held_names[BH_HELDS];

/* A node tried whether it can start a sandbox of its own that passes the isolation checks. */
struct bh_ev_checked {
    bh_node_id node;
    enum bh_outcome_kind outcome;
};

struct bh_ev_cordon {
    bh_gpu_id gpu; /* one of the two; 0: not it */
    bh_node_id node;
    enum bh_held held;
    bool clear_fault; /* a quarantine, or whatever the health of its GPUs is */
};

#endif
