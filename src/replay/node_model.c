#include "replay/node_model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "model/geometry.h"

enum {
    GPUS_MAX = 1024,
    PARTITIONS_MAX = 8192,
    PROCESSES_MAX = 4096,
    ORDERS_MAX = 65536,
    FAULTS_MAX = 64,
    ENDS_MAX = 2 * PROCESSES_MAX
};

enum process_state { PROCESS_RUNNING, PROCESS_FROZEN };

struct node_model_process {
    bh_lease_id lease;
    bh_node_id node;
    enum process_state state;
    struct bh_partition partitions[BH_JOB_COUNT_MAX];
    uint32_t partition_count;
};

enum order_state { ORDER_WAITING, ORDER_DONE };

struct order {
    struct bh_effect effect;
    struct bh_partition partitions[BH_JOB_COUNT_MAX];
    uint32_t partition_count;
    uint64_t due_ns;
    enum order_state state;
    enum bh_outcome_kind outcome;
};

struct bh_node_model {
    struct bh_ev_gpu gpus[GPUS_MAX];
    struct bh_partition partitions[PARTITIONS_MAX]; /* on their GPUs */
    struct node_model_process processes[PROCESSES_MAX];
    struct order *orders; /* in order of arrival */
    struct bh_node_model_fault faults[FAULTS_MAX];
    struct bh_node_model_answer ends[ENDS_MAX]; /* that reached no daemon */
    uint32_t gpu_count, partition_count, process_count, order_count, fault_count, end_count;
    uint64_t delays_ns[BH_EFFECT_KINDS];
    bool lost;   /* partitions have vanished: an order may rightly name one */
    bool in_way; /* partitions could not be destroyed: they may stand in the way */
};

static const char *const effect_names[BH_EFFECT_KINDS] = {
    [BH_FX_CARVE] = "carve",     [BH_FX_DESTROY] = "destroy", [BH_FX_START] = "start",
    [BH_FX_SUSPEND] = "suspend", [BH_FX_RESUME] = "resume",   [BH_FX_STOP] = "stop",
    [BH_FX_RESET] = "reset",     [BH_FX_TEST] = "test",       [BH_FX_JOB] = "job",
};

struct bh_node_model *
bh_node_model_new(void)
{
    struct bh_node_model *nodes = calloc(1, sizeof *nodes);

    BH_ASSERT(nodes);
    nodes->orders = calloc(ORDERS_MAX, sizeof *nodes->orders);
    BH_ASSERT(nodes->orders);
    return nodes;
}

void
bh_node_model_free(struct bh_node_model *nodes)
{
    if (!nodes)
        return;
    free(nodes->orders);
    free(nodes);
}

bh_rc
bh_node_model_add_gpu(struct bh_node_model *nodes, const struct bh_ev_gpu *gpu, struct bh_err *err)
{
    if (nodes->gpu_count == GPUS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d GPUs", GPUS_MAX);
    nodes->gpus[nodes->gpu_count++] = *gpu;
    return BH_OK;
}

void
bh_node_model_delay(struct bh_node_model *nodes, enum bh_effect_kind kind, uint64_t span_ns)
{
    BH_ASSERT(kind < BH_EFFECT_KINDS);
    BH_ASSERT(span_ns <= BH_NODE_MODEL_DELAY_MAX_NS);
    nodes->delays_ns[kind] = span_ns;
}

bh_rc
bh_node_model_fail(struct bh_node_model *nodes, const struct bh_node_model_fault *fault, struct bh_err *err)
{
    if (nodes->fault_count == FAULTS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d failures", FAULTS_MAX);
    nodes->faults[nodes->fault_count++] = *fault;
    return BH_OK;
}

/* ---- what is there and runs ---- */

static const struct bh_ev_gpu *
node_model_find_gpu(const struct bh_node_model *nodes, bh_gpu_id gpu)
{
    for (uint32_t i = 0; i < nodes->gpu_count; i++)
        if (bh_same(nodes->gpus[i].gpu, gpu))
            return &nodes->gpus[i];
    return NULL;
}

static struct bh_partition *
node_model_find_partition(struct bh_node_model *nodes, bh_partition_id partition)
{
    for (uint32_t i = 0; i < nodes->partition_count; i++)
        if (bh_same(nodes->partitions[i].partition, partition))
            return &nodes->partitions[i];
    return NULL;
}

static void
node_model_drop_partition(struct bh_node_model *nodes, struct bh_partition *carved)
{
    *carved = nodes->partitions[--nodes->partition_count];
}

static struct node_model_process *
node_model_find_process(struct bh_node_model *nodes, bh_lease_id lease)
{
    for (uint32_t i = 0; i < nodes->process_count; i++)
        if (bh_same(nodes->processes[i].lease, lease))
            return &nodes->processes[i];
    return NULL;
}

static void
node_model_drop_process(struct bh_node_model *nodes, struct node_model_process *process)
{
    *process = nodes->processes[--nodes->process_count];
}

/* The running lease that uses a partition, or none. */
static const struct node_model_process *
node_model_user_of(const struct bh_node_model *nodes, bh_partition_id partition)
{
    for (uint32_t i = 0; i < nodes->process_count; i++) {
        const struct node_model_process *process = &nodes->processes[i];

        for (uint32_t k = 0; process->state == PROCESS_RUNNING && k < process->partition_count; k++)
            if (bh_same(process->partitions[k].partition, partition))
                return process;
    }
    return NULL;
}

/* What is on a GPU; `ret_count` partitions. */
static void
node_model_occupancy_of(const struct bh_node_model *nodes, bh_gpu_id gpu, struct bh_occupancy *ret_occupancy,
                        uint32_t *ret_count)
{
    const struct bh_ev_gpu *known = node_model_find_gpu(nodes, gpu);
    enum bh_gpu_model model = known ? (enum bh_gpu_model)known->model : BH_GPU_MODEL_NONE;

    /* the node knows nothing of what a site sells */
    *ret_occupancy = (struct bh_occupancy){ .share_limit = BH_SHARE_OVERSUBSCRIBE_MAX * BH_GPU_PARTS };
    *ret_count = 0;
    for (uint32_t i = 0; i < nodes->partition_count; i++) {
        const struct bh_partition *partition = &nodes->partitions[i];

        if (!bh_same(partition->gpu, gpu))
            continue;
        ++*ret_count;
        bh_partition_add(ret_occupancy, model, partition->profile, partition->start);
    }
}

/* ---- failures ---- */

static bool
node_model_concerns(const struct bh_node_model_fault *fault, const struct order *order)
{
    if (fault->kind != order->effect.kind || fault->times == 0)
        return false;
    if (fault->gpu.v == 0 || bh_same(fault->gpu, order->effect.partition.gpu))
        return true;
    for (uint32_t i = 0; i < order->partition_count; i++)
        if (bh_same(fault->gpu, order->partitions[i].gpu))
            return true;
    return false;
}

static bool
node_model_is_to_fail(struct bh_node_model *nodes, const struct order *order)
{
    for (uint32_t i = 0; i < nodes->fault_count; i++)
        if (node_model_concerns(&nodes->faults[i], order)) {
            nodes->faults[i].times--;
            nodes->in_way = nodes->in_way || order->effect.kind == BH_FX_DESTROY;
            return true;
        }
    return false;
}

/* ---- carrying out ---- */

typedef bh_rc carry_out(struct bh_node_model *nodes, struct order *order, struct bh_err *err);

static bh_rc
node_model_carve(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    const struct bh_partition *partition = &order->effect.partition;
    const struct bh_ev_gpu *gpu = node_model_find_gpu(nodes, partition->gpu);
    enum bh_gpu_model model = gpu ? (enum bh_gpu_model)gpu->model : BH_GPU_MODEL_NONE;
    struct bh_occupancy occupancy;
    char name[BH_PARTITION_NAME_MAX];
    uint32_t count;

    node_model_occupancy_of(nodes, partition->gpu, &occupancy, &count);
    if (bh_partition_fits(&occupancy, model, partition->profile, partition->start)) {
        if (nodes->partition_count == PARTITIONS_MAX)
            return bh_err_set(err, BH_FULL, "more than %d partitions", PARTITIONS_MAX);
        nodes->partitions[nodes->partition_count++] = *partition;
        return BH_OK;
    }
    bh_partition_name(model, partition->profile, name);
    if (!nodes->in_way)
        return bh_err_set(err, BH_BUG, "the node was ordered to carve %s at %u of GPU %u, which is occupied",
                          name, partition->start, partition->gpu.v);
    order->outcome = BH_OUTCOME_FAILED;
    return BH_OK;
}

static bh_rc
node_model_destroy(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    struct bh_partition *carved = node_model_find_partition(nodes, order->effect.partition.partition);
    const struct node_model_process *user = node_model_user_of(nodes, order->effect.partition.partition);

    if (user)
        return bh_err_set(err, BH_BUG,
                          "the node was ordered to destroy partition %" PRIu64 ", which lease %" PRIu64
                          " uses",
                          order->effect.partition.partition.v, user->lease.v);
    if (carved)
        node_model_drop_partition(nodes, carved);
    return BH_OK;
}

/* Whether the partitions of a lease stand and are free; a partition that the scenario took
 * away only makes the order fail. */
static bh_rc
node_model_check_partitions(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    for (uint32_t i = 0; i < order->partition_count; i++) {
        const struct node_model_process *user = node_model_user_of(nodes, order->partitions[i].partition);

        if (user)
            return bh_err_set(err, BH_BUG,
                              "lease %" PRIu64 " is to run on a partition that lease %" PRIu64 " uses",
                              order->effect.lease.v, user->lease.v);
        if (node_model_find_partition(nodes, order->partitions[i].partition))
            continue;
        if (!nodes->lost)
            return bh_err_set(err, BH_BUG,
                              "lease %" PRIu64 " is to run on partition %" PRIu64 ", which is not there",
                              order->effect.lease.v, order->partitions[i].partition.v);
        order->outcome = BH_OUTCOME_FAILED;
    }
    return order->partition_count > 0
               ? BH_OK
               : bh_err_set(err, BH_BUG, "lease %" PRIu64 " has no partitions", order->effect.lease.v);
}

static bh_rc
node_model_start(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    struct node_model_process *process = &nodes->processes[nodes->process_count];
    bh_rc rc = node_model_check_partitions(nodes, order, err);

    if (rc != BH_OK || order->outcome != BH_OUTCOME_OK)
        return rc;
    if (node_model_find_process(nodes, order->effect.lease))
        return bh_err_set(err, BH_BUG, "lease %" PRIu64 " is started twice", order->effect.lease.v);
    if (nodes->process_count == PROCESSES_MAX)
        return bh_err_set(err, BH_FULL, "more than %d leases run", PROCESSES_MAX);
    *process = (struct node_model_process){ .lease = order->effect.lease,
                                            .node = order->effect.node,
                                            .state = PROCESS_RUNNING,
                                            .partition_count = order->partition_count };
    memcpy(process->partitions, order->partitions, sizeof process->partitions);
    nodes->process_count++;
    return BH_OK;
}

static bh_rc
node_model_suspend(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    struct node_model_process *process = node_model_find_process(nodes, order->effect.lease);

    if (process)
        process->state = PROCESS_FROZEN;
    else
        order->outcome = BH_OUTCOME_FAILED; /* it ended meanwhile */
    return BH_OK;
}

static bool
node_model_same_place(const struct bh_partition *a, const struct bh_partition *b)
{
    return bh_same(a->gpu, b->gpu) && a->profile == b->profile && a->start == b->start;
}

static bh_rc
node_model_resume(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    struct node_model_process *process = node_model_find_process(nodes, order->effect.lease);
    bh_rc rc = node_model_check_partitions(nodes, order, err);

    if (rc != BH_OK || order->outcome != BH_OUTCOME_OK)
        return rc;
    if (!process) {
        order->outcome = BH_OUTCOME_FAILED;
        return BH_OK;
    }
    for (uint32_t i = 0; i < process->partition_count; i++)
        if (process->partition_count != order->partition_count
            || !node_model_same_place(&process->partitions[i], &order->partitions[i]))
            return bh_err_set(err, BH_BUG, "lease %" PRIu64 " is resumed at another place", process->lease.v);
    memcpy(process->partitions, order->partitions, sizeof process->partitions);
    process->state = PROCESS_RUNNING;
    return BH_OK;
}

static bh_rc
node_model_stop(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    struct node_model_process *process = node_model_find_process(nodes, order->effect.lease);

    if (process)
        node_model_drop_process(nodes, process);
    return BH_OK;
}

/* Nothing is left on the GPU, and no lease may use it then. */
static bh_rc
node_model_reset(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    for (uint32_t i = 0; i < nodes->partition_count;) {
        const struct node_model_process *user = node_model_user_of(nodes, nodes->partitions[i].partition);

        if (!bh_same(nodes->partitions[i].gpu, order->effect.partition.gpu)) {
            i++;
            continue;
        }
        if (user)
            return bh_err_set(err, BH_BUG,
                              "the node was ordered to reset GPU %u, which lease %" PRIu64 " uses",
                              order->effect.partition.gpu.v, user->lease.v);
        node_model_drop_partition(nodes, &nodes->partitions[i]);
    }
    return BH_OK;
}

static bh_rc
node_model_test(struct bh_node_model *nodes, struct order *order, struct bh_err *err)
{
    return BH_OK;
}

static bool
node_model_is_of_gpu(enum bh_effect_kind kind)
{
    return kind == BH_FX_RESET || kind == BH_FX_TEST;
}

static carry_out *const carry_outs[BH_EFFECT_KINDS] = {
    [BH_FX_CARVE] = node_model_carve,   [BH_FX_DESTROY] = node_model_destroy,
    [BH_FX_START] = node_model_start,   [BH_FX_SUSPEND] = node_model_suspend,
    [BH_FX_RESUME] = node_model_resume, [BH_FX_STOP] = node_model_stop,
    [BH_FX_RESET] = node_model_reset,   [BH_FX_TEST] = node_model_test,
};

/* ---- orders ---- */

static bool
node_model_same_subject(const struct order *a, const struct bh_effect *b)
{
    bool partition = a->effect.kind == BH_FX_CARVE || a->effect.kind == BH_FX_DESTROY;

    if (node_model_is_of_gpu(b->kind) || node_model_is_of_gpu(a->effect.kind))
        return bh_same(a->effect.partition.gpu, b->partition.gpu);
    if (partition != (b->kind == BH_FX_CARVE || b->kind == BH_FX_DESTROY))
        return false;
    return partition ? bh_same(a->effect.partition.gpu, b->partition.gpu)
                     : bh_same(a->effect.lease, b->lease);
}

/* A GPU, and a lease, is worked on by one order after the other. */
static uint64_t
node_model_free_from_ns(const struct bh_node_model *nodes, const struct bh_node_model_order *order)
{
    uint64_t from_ns = order->now_ns;

    for (uint32_t i = 0; i < nodes->order_count; i++)
        if (nodes->orders[i].state == ORDER_WAITING && nodes->orders[i].due_ns > from_ns
            && node_model_same_subject(&nodes->orders[i], order->effect))
            from_ns = nodes->orders[i].due_ns;
    return from_ns;
}

static struct order *
node_model_find_order(struct bh_node_model *nodes, uint64_t number)
{
    for (uint32_t i = 0; i < nodes->order_count; i++)
        if (nodes->orders[i].effect.order == number)
            return &nodes->orders[i];
    return NULL;
}

bh_rc
bh_node_model_order(struct bh_node_model *nodes, const struct bh_node_model_order *order, struct bh_err *err)
{
    const struct bh_effect *effect = order->effect;
    struct order *known = node_model_find_order(nodes, effect->order);

    BH_ASSERT(effect->kind < BH_FX_JOB);
    BH_ASSERT(order->partition_count <= BH_JOB_COUNT_MAX);
    if (known && known->effect.kind != effect->kind)
        return bh_err_set(err, BH_BUG, "order %" PRIu64 " was to %s and now is to %s", effect->order,
                          effect_names[known->effect.kind], effect_names[effect->kind]);
    if (known) {
        if (known->state == ORDER_DONE)
            known->due_ns = order->now_ns; /* the old outcome is sent again */
        return BH_OK;
    }
    if (nodes->order_count == ORDERS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d orders", ORDERS_MAX);
    known = &nodes->orders[nodes->order_count];
    *known = (struct order){ .effect = *effect,
                             .partition_count = order->partition_count,
                             .state = ORDER_WAITING };
    for (uint32_t i = 0; i < order->partition_count; i++)
        known->partitions[i] = order->partitions[i];
    known->due_ns = node_model_free_from_ns(nodes, order) + nodes->delays_ns[effect->kind];
    nodes->order_count++;
    return BH_OK;
}

/* The order that is due first; of those due at once, the one that came first. */
static struct order *
node_model_next_order(const struct bh_node_model *nodes)
{
    struct order *next = NULL;

    for (uint32_t i = 0; i < nodes->order_count; i++)
        if (nodes->orders[i].due_ns != UINT64_MAX && (!next || nodes->orders[i].due_ns < next->due_ns))
            next = &nodes->orders[i];
    return next;
}

uint64_t
bh_node_model_next_due_ns(const struct bh_node_model *nodes)
{
    const struct order *next = node_model_next_order(nodes);

    return next ? next->due_ns : UINT64_MAX;
}

static struct bh_event
node_model_answer_to(const struct order *order)
{
    static const uint8_t kinds[BH_FX_JOB] = {
        [BH_FX_CARVE] = BH_EV_CARVED,      [BH_FX_DESTROY] = BH_EV_DESTROYED, [BH_FX_START] = BH_EV_STARTED,
        [BH_FX_SUSPEND] = BH_EV_SUSPENDED, [BH_FX_RESUME] = BH_EV_RESUMED,    [BH_FX_STOP] = BH_EV_ENDED,
        [BH_FX_RESET] = BH_EV_SERVICED,    [BH_FX_TEST] = BH_EV_SERVICED,
    };
    const struct bh_effect *effect = &order->effect;
    struct bh_event event = { .kind = (enum bh_event_kind)kinds[effect->kind] };

    if (effect->kind == BH_FX_STOP)
        event.u.ended =
            (struct bh_ev_ended){ .lease = effect->lease, .cause = BH_END_SIGNALLED, .exit_status = 15 };
    else if (effect->kind == BH_FX_CARVE || effect->kind == BH_FX_DESTROY)
        event.u.partition = (struct bh_ev_partition){ effect->partition.partition, order->outcome, 0 };
    else if (node_model_is_of_gpu(effect->kind))
        event.u.serviced = (struct bh_ev_serviced){ effect->partition.gpu, order->outcome, 0 };
    else
        event.u.lease = (struct bh_ev_lease){ effect->lease, order->outcome, 0 };
    return event;
}

static enum bh_outcome_kind
node_model_failure_of(enum bh_effect_kind kind)
{
    return kind == BH_FX_SUSPEND ? BH_OUTCOME_CONTEXT_HELD : BH_OUTCOME_FAILED;
}

bh_rc
bh_node_model_finish_next(struct bh_node_model *nodes, struct bh_node_model_answer *ret_answer,
                          struct bh_err *err)
{
    struct order *order = node_model_next_order(nodes);
    bh_rc rc = BH_OK;

    BH_ASSERT(order);
    order->due_ns = UINT64_MAX;
    if (order->state == ORDER_WAITING) {
        order->state = ORDER_DONE;
        if (node_model_is_to_fail(nodes, order))
            order->outcome = node_model_failure_of(order->effect.kind);
        else
            rc = carry_outs[order->effect.kind](nodes, order, err);
    }
    if (rc != BH_OK)
        return rc;
    *ret_answer = (struct bh_node_model_answer){ order->effect.node, node_model_answer_to(order) };
    return BH_OK;
}

/* ---- ends ---- */

bh_rc
bh_node_model_exit(struct bh_node_model *nodes, const struct bh_ev_ended *end,
                   struct bh_node_model_answer *ret_answer, struct bh_err *err)
{
    struct node_model_process *process = node_model_find_process(nodes, end->lease);

    if (!process || process->state != PROCESS_RUNNING)
        return bh_err_set(err, BH_NOT_FOUND, "it has no processes that run");
    *ret_answer = (struct bh_node_model_answer){ process->node, { .kind = BH_EV_ENDED, .u.ended = *end } };
    node_model_drop_process(nodes, process);
    return BH_OK;
}

void
bh_node_model_defer_end(struct bh_node_model *nodes, const struct bh_node_model_answer *answer)
{
    BH_ASSERT(answer->event.kind == BH_EV_ENDED);
    BH_ASSERT(nodes->end_count < ENDS_MAX);
    nodes->ends[nodes->end_count++] = *answer;
}

bool
bh_node_model_next_deferred(struct bh_node_model *nodes, bh_node_id node, struct bh_event *ret_event)
{
    for (uint32_t i = 0; i < nodes->end_count; i++) {
        if (!bh_same(nodes->ends[i].node, node))
            continue;
        *ret_event = nodes->ends[i].event;
        nodes->end_count--;
        memmove(&nodes->ends[i], &nodes->ends[i + 1], (nodes->end_count - i) * sizeof nodes->ends[0]);
        return true;
    }
    return false;
}

/* ---- losses ---- */

static bool
node_model_is_on_node(const struct bh_node_model *nodes, bh_gpu_id gpu, bh_node_id node)
{
    const struct bh_ev_gpu *known = node_model_find_gpu(nodes, gpu);

    return known && bh_same(known->node, node);
}

static void
node_model_kill_processes(struct bh_node_model *nodes, bh_node_id node)
{
    for (uint32_t i = 0; i < nodes->process_count;) {
        struct node_model_process *process = &nodes->processes[i];
        struct bh_node_model_answer end = { node, { .kind = BH_EV_ENDED } };

        if (!bh_same(process->node, node)) {
            i++;
            continue;
        }
        end.event.u.ended = (struct bh_ev_ended){ .lease = process->lease, .cause = BH_END_NODE_LOST };
        bh_node_model_defer_end(nodes, &end);
        node_model_drop_process(nodes, process);
    }
}

void
bh_node_model_reboot(struct bh_node_model *nodes, bh_node_id node)
{
    nodes->lost = true;
    node_model_kill_processes(nodes, node);
    for (uint32_t i = 0; i < nodes->partition_count;)
        if (node_model_is_on_node(nodes, nodes->partitions[i].gpu, node))
            node_model_drop_partition(nodes, &nodes->partitions[i]);
        else
            i++;
    for (uint32_t i = 0; i < nodes->order_count; i++)
        if (bh_same(nodes->orders[i].effect.node, node) && nodes->orders[i].state == ORDER_WAITING) {
            nodes->orders[i].effect.order = 0; /* sent again, it is new */
            nodes->orders[i].state = ORDER_DONE;
            nodes->orders[i].due_ns = UINT64_MAX;
        }
}

void
bh_node_model_lose_partition(struct bh_node_model *nodes, bh_partition_id partition)
{
    struct bh_partition *carved = node_model_find_partition(nodes, partition);

    nodes->lost = true;
    if (carved)
        node_model_drop_partition(nodes, carved);
}

bool
bh_node_model_has_partition(const struct bh_node_model *nodes, bh_partition_id partition)
{
    for (uint32_t i = 0; i < nodes->partition_count; i++)
        if (bh_same(nodes->partitions[i].partition, partition))
            return true;
    return false;
}
