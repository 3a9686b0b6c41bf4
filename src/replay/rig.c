#include "replay/rig.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "model/geometry.h"

enum {
    GPUS_MAX = 1024,
    PIECES_MAX = 8192,
    PROCESSES_MAX = 4096,
    ORDERS_MAX = 65536,
    FAULTS_MAX = 64,
    ENDS_MAX = 2 * PROCESSES_MAX
};

enum process_state { PROCESS_RUNNING, PROCESS_FROZEN };

struct rig_process {
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

struct bh_rig {
    struct bh_ev_gpu gpus[GPUS_MAX];
    struct bh_partition stood[PIECES_MAX]; /* partitions on their GPUs */
    struct rig_process processes[PROCESSES_MAX];
    struct order *orders; /* in order of arrival */
    struct bh_rig_fault faults[FAULTS_MAX];
    struct bh_rig_answer ends[ENDS_MAX]; /* that nobody heard */
    uint32_t gpu_count, stood_count, process_count, order_count, fault_count, end_count;
    uint64_t delays_ns[BH_EFFECT_KINDS];
    bool lost;   /* partitions have vanished: an order may rightly name one */
    bool in_way; /* partitions could not be destroyed: they may stand in the way */
};

static const char *const effect_names[BH_EFFECT_KINDS] = {
    [BH_FX_CARVE] = "carve",     [BH_FX_DESTROY] = "destroy", [BH_FX_START] = "start",
    [BH_FX_SUSPEND] = "suspend", [BH_FX_RESUME] = "resume",   [BH_FX_STOP] = "stop",
    [BH_FX_RESET] = "reset",     [BH_FX_TEST] = "test",       [BH_FX_JOB] = "job",
};

struct bh_rig *
bh_rig_new(void)
{
    struct bh_rig *rig = calloc(1, sizeof *rig);

    BH_ASSERT(rig);
    rig->orders = calloc(ORDERS_MAX, sizeof *rig->orders);
    BH_ASSERT(rig->orders);
    return rig;
}

void
bh_rig_free(struct bh_rig *rig)
{
    if (!rig)
        return;
    free(rig->orders);
    free(rig);
}

bh_rc
bh_rig_add_gpu(struct bh_rig *rig, const struct bh_ev_gpu *gpu, struct bh_err *err)
{
    if (rig->gpu_count == GPUS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d GPUs", GPUS_MAX);
    rig->gpus[rig->gpu_count++] = *gpu;
    return BH_OK;
}

void
bh_rig_delay(struct bh_rig *rig, enum bh_effect_kind kind, uint64_t span_ns)
{
    BH_ASSERT(kind < BH_EFFECT_KINDS);
    BH_ASSERT(span_ns <= BH_RIG_DELAY_MAX_NS);
    rig->delays_ns[kind] = span_ns;
}

bh_rc
bh_rig_fail(struct bh_rig *rig, const struct bh_rig_fault *fault, struct bh_err *err)
{
    if (rig->fault_count == FAULTS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d failures", FAULTS_MAX);
    rig->faults[rig->fault_count++] = *fault;
    return BH_OK;
}

/* ---- what stands and runs ---- */

static const struct bh_ev_gpu *
rig_find_gpu(const struct bh_rig *rig, bh_gpu_id gpu)
{
    for (uint32_t i = 0; i < rig->gpu_count; i++)
        if (bh_same(rig->gpus[i].gpu, gpu))
            return &rig->gpus[i];
    return NULL;
}

static struct bh_partition *
rig_find_stood(struct bh_rig *rig, bh_partition_id partition)
{
    for (uint32_t i = 0; i < rig->stood_count; i++)
        if (bh_same(rig->stood[i].partition, partition))
            return &rig->stood[i];
    return NULL;
}

static void
rig_drop_stood(struct bh_rig *rig, struct bh_partition *stood)
{
    *stood = rig->stood[--rig->stood_count];
}

static struct rig_process *
rig_find_process(struct bh_rig *rig, bh_lease_id lease)
{
    for (uint32_t i = 0; i < rig->process_count; i++)
        if (bh_same(rig->processes[i].lease, lease))
            return &rig->processes[i];
    return NULL;
}

static void
rig_drop_process(struct bh_rig *rig, struct rig_process *process)
{
    *process = rig->processes[--rig->process_count];
}

/* The running lease that uses a partition, or none. */
static const struct rig_process *
rig_user_of(const struct bh_rig *rig, bh_partition_id partition)
{
    for (uint32_t i = 0; i < rig->process_count; i++) {
        const struct rig_process *process = &rig->processes[i];

        for (uint32_t k = 0; process->state == PROCESS_RUNNING && k < process->partition_count; k++)
            if (bh_same(process->partitions[k].partition, partition))
                return process;
    }
    return NULL;
}

/* What stands on a GPU; `ret_count` partitions. */
static void
rig_occupancy_of(const struct bh_rig *rig, bh_gpu_id gpu, struct bh_occupancy *ret_occupancy,
                 uint32_t *ret_count)
{
    const struct bh_ev_gpu *known = rig_find_gpu(rig, gpu);
    enum bh_gpu_model model = known ? (enum bh_gpu_model)known->model : BH_GPU_MODEL_NONE;

    /* what a site sells of a GPU is no matter of the node */
    *ret_occupancy = (struct bh_occupancy){ .share_limit = BH_SHARE_OVERSUBSCRIBE_MAX * BH_GPU_PARTS };
    *ret_count = 0;
    for (uint32_t i = 0; i < rig->stood_count; i++) {
        const struct bh_partition *partition = &rig->stood[i];

        if (!bh_same(partition->gpu, gpu))
            continue;
        ++*ret_count;
        bh_partition_add(ret_occupancy, model, partition->profile, partition->start);
    }
}

/* ---- failures ---- */

static bool
rig_concerns(const struct bh_rig_fault *fault, const struct order *order)
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
rig_is_to_fail(struct bh_rig *rig, const struct order *order)
{
    for (uint32_t i = 0; i < rig->fault_count; i++)
        if (rig_concerns(&rig->faults[i], order)) {
            rig->faults[i].times--;
            rig->in_way = rig->in_way || order->effect.kind == BH_FX_DESTROY;
            return true;
        }
    return false;
}

/* ---- carrying out ---- */

typedef bh_rc carry_out(struct bh_rig *rig, struct order *order, struct bh_err *err);

static bh_rc
rig_carve(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    const struct bh_partition *partition = &order->effect.partition;
    const struct bh_ev_gpu *gpu = rig_find_gpu(rig, partition->gpu);
    enum bh_gpu_model model = gpu ? (enum bh_gpu_model)gpu->model : BH_GPU_MODEL_NONE;
    struct bh_occupancy occupancy;
    char name[BH_PARTITION_NAME_MAX];
    uint32_t count;

    rig_occupancy_of(rig, partition->gpu, &occupancy, &count);
    if (bh_partition_fits(&occupancy, model, partition->profile, partition->start)) {
        if (rig->stood_count == PIECES_MAX)
            return bh_err_set(err, BH_FULL, "more than %d pieces", PIECES_MAX);
        rig->stood[rig->stood_count++] = *partition;
        return BH_OK;
    }
    bh_partition_name(model, partition->profile, name);
    if (!rig->in_way)
        return bh_err_set(err, BH_BUG,
                          "the node was told to carve %s at %u of GPU %u, where something stands", name,
                          partition->start, partition->gpu.v);
    order->outcome = BH_OUTCOME_FAILED;
    return BH_OK;
}

static bh_rc
rig_destroy(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    struct bh_partition *stood = rig_find_stood(rig, order->effect.partition.partition);
    const struct rig_process *user = rig_user_of(rig, order->effect.partition.partition);

    if (user)
        return bh_err_set(err, BH_BUG,
                          "the node was told to destroy piece %" PRIu64 ", which lease %" PRIu64 " uses",
                          order->effect.partition.partition.v, user->lease.v);
    if (stood)
        rig_drop_stood(rig, stood);
    return BH_OK;
}

/* Whether the partitions of a lease stand and are free; a partition that the scenario took
 * away only makes the order fail. */
static bh_rc
rig_check_pieces(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    for (uint32_t i = 0; i < order->partition_count; i++) {
        const struct rig_process *user = rig_user_of(rig, order->partitions[i].partition);

        if (user)
            return bh_err_set(err, BH_BUG,
                              "lease %" PRIu64 " is to run on a piece that lease %" PRIu64 " uses",
                              order->effect.lease.v, user->lease.v);
        if (rig_find_stood(rig, order->partitions[i].partition))
            continue;
        if (!rig->lost)
            return bh_err_set(err, BH_BUG,
                              "lease %" PRIu64 " is to run on piece %" PRIu64 ", which does not stand",
                              order->effect.lease.v, order->partitions[i].partition.v);
        order->outcome = BH_OUTCOME_FAILED;
    }
    return order->partition_count > 0
               ? BH_OK
               : bh_err_set(err, BH_BUG, "lease %" PRIu64 " has no pieces", order->effect.lease.v);
}

static bh_rc
rig_start(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    struct rig_process *process = &rig->processes[rig->process_count];
    bh_rc rc = rig_check_pieces(rig, order, err);

    if (rc != BH_OK || order->outcome != BH_OUTCOME_OK)
        return rc;
    if (rig_find_process(rig, order->effect.lease))
        return bh_err_set(err, BH_BUG, "lease %" PRIu64 " is started twice", order->effect.lease.v);
    if (rig->process_count == PROCESSES_MAX)
        return bh_err_set(err, BH_FULL, "more than %d leases run", PROCESSES_MAX);
    *process = (struct rig_process){ .lease = order->effect.lease,
                                     .node = order->effect.node,
                                     .state = PROCESS_RUNNING,
                                     .partition_count = order->partition_count };
    memcpy(process->partitions, order->partitions, sizeof process->partitions);
    rig->process_count++;
    return BH_OK;
}

static bh_rc
rig_suspend(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    struct rig_process *process = rig_find_process(rig, order->effect.lease);

    if (process)
        process->state = PROCESS_FROZEN;
    else
        order->outcome = BH_OUTCOME_FAILED; /* it ended meanwhile */
    return BH_OK;
}

static bool
rig_same_place(const struct bh_partition *a, const struct bh_partition *b)
{
    return bh_same(a->gpu, b->gpu) && a->profile == b->profile && a->start == b->start;
}

static bh_rc
rig_resume(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    struct rig_process *process = rig_find_process(rig, order->effect.lease);
    bh_rc rc = rig_check_pieces(rig, order, err);

    if (rc != BH_OK || order->outcome != BH_OUTCOME_OK)
        return rc;
    if (!process) {
        order->outcome = BH_OUTCOME_FAILED;
        return BH_OK;
    }
    for (uint32_t i = 0; i < process->partition_count; i++)
        if (process->partition_count != order->partition_count
            || !rig_same_place(&process->partitions[i], &order->partitions[i]))
            return bh_err_set(err, BH_BUG, "lease %" PRIu64 " is resumed at another place", process->lease.v);
    memcpy(process->partitions, order->partitions, sizeof process->partitions);
    process->state = PROCESS_RUNNING;
    return BH_OK;
}

static bh_rc
rig_stop(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    struct rig_process *process = rig_find_process(rig, order->effect.lease);

    if (process)
        rig_drop_process(rig, process);
    return BH_OK;
}

/* Whatever stood on the GPU is gone; nobody may use it then. */
static bh_rc
rig_reset(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    for (uint32_t i = 0; i < rig->stood_count;) {
        const struct rig_process *user = rig_user_of(rig, rig->stood[i].partition);

        if (!bh_same(rig->stood[i].gpu, order->effect.partition.gpu)) {
            i++;
            continue;
        }
        if (user)
            return bh_err_set(err, BH_BUG, "the node was told to reset GPU %u, which lease %" PRIu64 " uses",
                              order->effect.partition.gpu.v, user->lease.v);
        rig_drop_stood(rig, &rig->stood[i]);
    }
    return BH_OK;
}

static bh_rc
rig_test(struct bh_rig *rig, struct order *order, struct bh_err *err)
{
    return BH_OK;
}

static bool
rig_of_gpu(enum bh_effect_kind kind)
{
    return kind == BH_FX_RESET || kind == BH_FX_TEST;
}

static carry_out *const carry_outs[BH_EFFECT_KINDS] = {
    [BH_FX_CARVE] = rig_carve,     [BH_FX_DESTROY] = rig_destroy, [BH_FX_START] = rig_start,
    [BH_FX_SUSPEND] = rig_suspend, [BH_FX_RESUME] = rig_resume,   [BH_FX_STOP] = rig_stop,
    [BH_FX_RESET] = rig_reset,     [BH_FX_TEST] = rig_test,
};

/* ---- orders ---- */

static bool
rig_same_subject(const struct order *a, const struct bh_effect *b)
{
    bool partition = a->effect.kind == BH_FX_CARVE || a->effect.kind == BH_FX_DESTROY;

    if (rig_of_gpu(b->kind) || rig_of_gpu(a->effect.kind))
        return bh_same(a->effect.partition.gpu, b->partition.gpu);
    if (partition != (b->kind == BH_FX_CARVE || b->kind == BH_FX_DESTROY))
        return false;
    return partition ? bh_same(a->effect.partition.gpu, b->partition.gpu)
                     : bh_same(a->effect.lease, b->lease);
}

/* A GPU, and a lease, is worked on by one order after the other. */
static uint64_t
rig_free_from_ns(const struct bh_rig *rig, const struct bh_rig_order *order)
{
    uint64_t from_ns = order->now_ns;

    for (uint32_t i = 0; i < rig->order_count; i++)
        if (rig->orders[i].state == ORDER_WAITING && rig->orders[i].due_ns > from_ns
            && rig_same_subject(&rig->orders[i], order->effect))
            from_ns = rig->orders[i].due_ns;
    return from_ns;
}

static struct order *
rig_find_order(struct bh_rig *rig, uint64_t number)
{
    for (uint32_t i = 0; i < rig->order_count; i++)
        if (rig->orders[i].effect.order == number)
            return &rig->orders[i];
    return NULL;
}

bh_rc
bh_rig_order(struct bh_rig *rig, const struct bh_rig_order *order, struct bh_err *err)
{
    const struct bh_effect *effect = order->effect;
    struct order *known = rig_find_order(rig, effect->order);

    BH_ASSERT(effect->kind < BH_FX_JOB);
    BH_ASSERT(order->partition_count <= BH_JOB_COUNT_MAX);
    if (known && known->effect.kind != effect->kind)
        return bh_err_set(err, BH_BUG, "order %" PRIu64 " was to %s and now is to %s", effect->order,
                          effect_names[known->effect.kind], effect_names[effect->kind]);
    if (known) {
        if (known->state == ORDER_DONE)
            known->due_ns = order->now_ns; /* the old outcome is told again */
        return BH_OK;
    }
    if (rig->order_count == ORDERS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d orders", ORDERS_MAX);
    known = &rig->orders[rig->order_count];
    *known = (struct order){ .effect = *effect,
                             .partition_count = order->partition_count,
                             .state = ORDER_WAITING };
    for (uint32_t i = 0; i < order->partition_count; i++)
        known->partitions[i] = order->partitions[i];
    known->due_ns = rig_free_from_ns(rig, order) + rig->delays_ns[effect->kind];
    rig->order_count++;
    return BH_OK;
}

/* The order that is due first; of those due at once, the one that came first. */
static struct order *
rig_next_order(const struct bh_rig *rig)
{
    struct order *next = NULL;

    for (uint32_t i = 0; i < rig->order_count; i++)
        if (rig->orders[i].due_ns != UINT64_MAX && (!next || rig->orders[i].due_ns < next->due_ns))
            next = &rig->orders[i];
    return next;
}

uint64_t
bh_rig_next_due_ns(const struct bh_rig *rig)
{
    const struct order *next = rig_next_order(rig);

    return next ? next->due_ns : UINT64_MAX;
}

static struct bh_event
rig_answer_to(const struct order *order)
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
    else if (rig_of_gpu(effect->kind))
        event.u.serviced = (struct bh_ev_serviced){ effect->partition.gpu, order->outcome, 0 };
    else
        event.u.lease = (struct bh_ev_lease){ effect->lease, order->outcome, 0 };
    return event;
}

static enum bh_outcome_kind
rig_failure_of(enum bh_effect_kind kind)
{
    return kind == BH_FX_SUSPEND ? BH_OUTCOME_CONTEXT_HELD : BH_OUTCOME_FAILED;
}

bh_rc
bh_rig_finish_next(struct bh_rig *rig, struct bh_rig_answer *ret_answer, struct bh_err *err)
{
    struct order *order = rig_next_order(rig);
    bh_rc rc = BH_OK;

    BH_ASSERT(order);
    order->due_ns = UINT64_MAX;
    if (order->state == ORDER_WAITING) {
        order->state = ORDER_DONE;
        if (rig_is_to_fail(rig, order))
            order->outcome = rig_failure_of(order->effect.kind);
        else
            rc = carry_outs[order->effect.kind](rig, order, err);
    }
    if (rc != BH_OK)
        return rc;
    *ret_answer = (struct bh_rig_answer){ order->effect.node, rig_answer_to(order) };
    return BH_OK;
}

/* ---- ends ---- */

bh_rc
bh_rig_exit(struct bh_rig *rig, const struct bh_ev_ended *end, struct bh_rig_answer *ret_answer,
            struct bh_err *err)
{
    struct rig_process *process = rig_find_process(rig, end->lease);

    if (!process || process->state != PROCESS_RUNNING)
        return bh_err_set(err, BH_NOT_FOUND, "it has no processes that run");
    *ret_answer = (struct bh_rig_answer){ process->node, { .kind = BH_EV_ENDED, .u.ended = *end } };
    rig_drop_process(rig, process);
    return BH_OK;
}

void
bh_rig_keep_end(struct bh_rig *rig, const struct bh_rig_answer *answer)
{
    BH_ASSERT(answer->event.kind == BH_EV_ENDED);
    BH_ASSERT(rig->end_count < ENDS_MAX);
    rig->ends[rig->end_count++] = *answer;
}

bool
bh_rig_next_untold(struct bh_rig *rig, bh_node_id node, struct bh_event *ret_event)
{
    for (uint32_t i = 0; i < rig->end_count; i++) {
        if (!bh_same(rig->ends[i].node, node))
            continue;
        *ret_event = rig->ends[i].event;
        rig->end_count--;
        memmove(&rig->ends[i], &rig->ends[i + 1], (rig->end_count - i) * sizeof rig->ends[0]);
        return true;
    }
    return false;
}

/* ---- losses ---- */

static bool
rig_on_node(const struct bh_rig *rig, bh_gpu_id gpu, bh_node_id node)
{
    const struct bh_ev_gpu *known = rig_find_gpu(rig, gpu);

    return known && bh_same(known->node, node);
}

static void
rig_kill_processes(struct bh_rig *rig, bh_node_id node)
{
    for (uint32_t i = 0; i < rig->process_count;) {
        struct rig_process *process = &rig->processes[i];
        struct bh_rig_answer end = { node, { .kind = BH_EV_ENDED } };

        if (!bh_same(process->node, node)) {
            i++;
            continue;
        }
        end.event.u.ended = (struct bh_ev_ended){ .lease = process->lease, .cause = BH_END_NODE_LOST };
        bh_rig_keep_end(rig, &end);
        rig_drop_process(rig, process);
    }
}

void
bh_rig_reboot(struct bh_rig *rig, bh_node_id node)
{
    rig->lost = true;
    rig_kill_processes(rig, node);
    for (uint32_t i = 0; i < rig->stood_count;)
        if (rig_on_node(rig, rig->stood[i].gpu, node))
            rig_drop_stood(rig, &rig->stood[i]);
        else
            i++;
    for (uint32_t i = 0; i < rig->order_count; i++)
        if (bh_same(rig->orders[i].effect.node, node) && rig->orders[i].state == ORDER_WAITING) {
            rig->orders[i].effect.order = 0; /* sent again, it is new */
            rig->orders[i].state = ORDER_DONE;
            rig->orders[i].due_ns = UINT64_MAX;
        }
}

void
bh_rig_lose_piece(struct bh_rig *rig, bh_partition_id partition)
{
    struct bh_partition *stood = rig_find_stood(rig, partition);

    rig->lost = true;
    if (stood)
        rig_drop_stood(rig, stood);
}

bool
bh_rig_has_piece(const struct bh_rig *rig, bh_partition_id partition)
{
    for (uint32_t i = 0; i < rig->stood_count; i++)
        if (bh_same(rig->stood[i].partition, partition))
            return true;
    return false;
}
