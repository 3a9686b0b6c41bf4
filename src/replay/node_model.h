#ifndef BH_REPLAY_NODE_MODEL_H
#define BH_REPLAY_NODE_MODEL_H

#include "base/attr.h"
#include "base/err.h"
#include "engine/state/event.h"

/* The nodes of a scenario: they carry out effects as bulkhead-node would, after delays and
 * with failures that the scenario chooses.
 *
 * The model keeps its own account of what is on each GPU and what runs there, and refuses with
 * BH_BUG what no good engine orders: to carve an occupied place, to destroy what is in use,
 * to start on partitions that are not there or not free.  Orders are journalled: a repeat
 * gets the old outcome. */
struct bh_node_model;

enum { BH_NODE_MODEL_NODES_MAX = 64 };
/* So that even all orders, one after the other, end in time. */
#define BH_NODE_MODEL_DELAY_MAX_NS (UINT64_C(4) * 3600 * 1000000000)

/* No GPUs yet; free(NULL) is fine. */
struct bh_node_model *bh_node_model_new(void);
void bh_node_model_free(struct bh_node_model *nodes);
BH_AUTO_DEFINE(struct bh_node_model *, bh_node_model_free)

/* Add a GPU to its node. */
BH_MUST_USE bh_rc bh_node_model_add_gpu(struct bh_node_model *nodes, const struct bh_ev_gpu *gpu,
                                        struct bh_err *err);

/* How long effects of this kind take from now on; at most
 * BH_NODE_MODEL_DELAY_MAX_NS. */
void bh_node_model_delay(struct bh_node_model *nodes, enum bh_effect_kind kind, uint64_t span_ns);

/* The next `times` effects of this kind fail; on that GPU only when gpu is not 0.  A
 * SUSPEND that fails is a job that keeps its context. */
struct bh_node_model_fault {
    enum bh_effect_kind kind;
    bh_gpu_id gpu;
    uint32_t times;
};
BH_MUST_USE bh_rc bh_node_model_fail(struct bh_node_model *nodes, const struct bh_node_model_fault *fault,
                                     struct bh_err *err);

/* Take an order at `now_ns`.  `partitions` are those of the lease (of START and RESUME).
 * BH_BUG: it contradicts what is there and runs. */
struct bh_node_model_order {
    const struct bh_effect *effect;
    const struct bh_partition *partitions;
    uint32_t partition_count;
    uint64_t now_ns;
};
BH_MUST_USE bh_rc bh_node_model_order(struct bh_node_model *nodes, const struct bh_node_model_order *order,
                                      struct bh_err *err);

/* When the next order is done, or UINT64_MAX. */
uint64_t bh_node_model_next_due_ns(const struct bh_node_model *nodes);

/* Finish the order that is due first: its answer and the node it comes from.
 * BH_BUG as bh_node_model_order. */
struct bh_node_model_answer {
    bh_node_id node;
    struct bh_event event;
};
BH_MUST_USE bh_rc bh_node_model_finish_next(struct bh_node_model *nodes,
                                            struct bh_node_model_answer *ret_answer, struct bh_err *err);

/* A lease's processes end by themselves; the event that says so.
 * BH_NOT_FOUND: they do not run. */
BH_MUST_USE bh_rc bh_node_model_exit(struct bh_node_model *nodes, const struct bh_ev_ended *end,
                                     struct bh_node_model_answer *ret_answer, struct bh_err *err);

/* This end reached no daemon: bh_node_model_next_deferred returns it when one is there. */
void bh_node_model_defer_end(struct bh_node_model *nodes, const struct bh_node_model_answer *answer);
bool bh_node_model_next_deferred(struct bh_node_model *nodes, bh_node_id node, struct bh_event *ret_event);

/* All processes of the node die, all its partitions are gone and orders under way are
 * forgotten; bh_node_model_next_deferred returns the ends. */
void bh_node_model_reboot(struct bh_node_model *nodes, bh_node_id node);

/* A partition vanishes from its GPU. */
void bh_node_model_lose_partition(struct bh_node_model *nodes, bh_partition_id partition);

/* Whether the partition is on its GPU. */
bool bh_node_model_has_partition(const struct bh_node_model *nodes, bh_partition_id partition);

#endif
