#ifndef BH_REPLAY_RIG_H
#define BH_REPLAY_RIG_H

#include "base/attr.h"
#include "base/err.h"
#include "engine/state/event.h"

/* The hardware of a scenario: nodes that carry out effects as bulkhead-node would,
 * after delays and with failures that the scenario chose.
 *
 * It keeps its own account of what stands and runs where, and refuses with BH_BUG what
 * no good engine orders: to carve where something stands, to destroy what is in use,
 * to start on partitions that are not there or not free.  Orders are journalled: a repeat
 * is answered with the old outcome. */
struct bh_rig;

enum { BH_RIG_NODES_MAX = 64 };
/* So that even all orders, one after the other, end in time. */
#define BH_RIG_DELAY_MAX_NS (UINT64_C(4) * 3600 * 1000000000)

/* No hardware yet; free(NULL) is fine. */
struct bh_rig *bh_rig_new(void);
void bh_rig_free(struct bh_rig *rig);
BH_AUTO_DEFINE(struct bh_rig *, bh_rig_free)

/* A GPU of this model stands on the node. */
BH_MUST_USE bh_rc bh_rig_add_gpu(struct bh_rig *rig, const struct bh_ev_gpu *gpu, struct bh_err *err);

/* How long effects of this kind take from now on; at most
 * BH_RIG_DELAY_MAX_NS. */
void bh_rig_delay(struct bh_rig *rig, enum bh_effect_kind kind, uint64_t span_ns);

/* The next `times` effects of this kind fail; on that GPU only when gpu is not 0.  A
 * SUSPEND that fails is a job that keeps its context. */
struct bh_rig_fault {
    enum bh_effect_kind kind;
    bh_gpu_id gpu;
    uint32_t times;
};
BH_MUST_USE bh_rc bh_rig_fail(struct bh_rig *rig, const struct bh_rig_fault *fault, struct bh_err *err);

/* Take an order at `now_ns`.  `partitions` are those of the lease (of START and RESUME).
 * BH_BUG: it contradicts what stands and runs there. */
struct bh_rig_order {
    const struct bh_effect *effect;
    const struct bh_partition *partitions;
    uint32_t partition_count;
    uint64_t now_ns;
};
BH_MUST_USE bh_rc bh_rig_order(struct bh_rig *rig, const struct bh_rig_order *order, struct bh_err *err);

/* When the next order is done, or UINT64_MAX. */
uint64_t bh_rig_next_due_ns(const struct bh_rig *rig);

/* Finish the order that is due first: its answer and the node it comes from.
 * BH_NOT_FOUND: it ended with nothing to tell.  BH_BUG as bh_rig_order. */
struct bh_rig_answer {
    bh_node_id node;
    struct bh_event event;
};
BH_MUST_USE bh_rc bh_rig_finish_next(struct bh_rig *rig, struct bh_rig_answer *ret_answer,
                                     struct bh_err *err);

/* A lease's processes end by themselves; the event that says so.
 * BH_NOT_FOUND: they do not run. */
BH_MUST_USE bh_rc bh_rig_exit(struct bh_rig *rig, const struct bh_ev_ended *end,
                              struct bh_rig_answer *ret_answer, struct bh_err *err);

/* Nobody heard this end: it is told again by bh_rig_next_untold. */
void bh_rig_keep_end(struct bh_rig *rig, const struct bh_rig_answer *answer);
bool bh_rig_next_untold(struct bh_rig *rig, bh_node_id node, struct bh_event *ret_event);

/* All processes of the node die, all its partitions are gone and orders under way are
 * forgotten; the ends are told by bh_rig_next_untold. */
void bh_rig_reboot(struct bh_rig *rig, bh_node_id node);

/* A partition vanishes from its GPU. */
void bh_rig_lose_piece(struct bh_rig *rig, bh_partition_id partition);

/* Whether the partition stands on its GPU. */
bool bh_rig_has_piece(const struct bh_rig *rig, bh_partition_id partition);

#endif
