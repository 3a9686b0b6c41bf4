#include "engine/forecast/future.h"

#include "base/assert.h"
#include "engine/queue/lease.h"
#include "engine/state/slots.h"

/* Orders of a future are distinguished from those that are not yet answered at its begin. */
#define FIRST_SEQ (UINT64_C(1) << 48)

/* ---- news ---- */

static void
future_notify(struct bh_future *future, struct bh_future_event event)
{
    event.at_ns = future->now_ns;
    if (event.kind == BH_FUTURE_EVENT_STARTS && bh_same(event.job, future->options.until))
        future->met = true;
    if (future->options.notify)
        future->options.notify(future->options.self, future->engine, &event);
}

static void
future_notify_decision(struct bh_future *future, const struct bh_decision *decision)
{
    struct bh_future_event event = { .job = decision->job,
                                     .for_job = decision->for_job,
                                     .cause = decision->cause };

    switch (decision->kind) {
    case BH_DO_PLACE:
        event.kind = BH_FUTURE_EVENT_STARTS;
        break;
    case BH_DO_RESUME:
        event.kind = BH_FUTURE_EVENT_RESUMES;
        break;
    case BH_DO_SUSPEND:
        event.kind = BH_FUTURE_EVENT_SUSPENDED;
        break;
    case BH_DO_STOP:
        if (!decision->lease.v
            || !bh_lease_queues_again(job_at(future->engine, job_find(future->engine, decision->job.v)),
                                      decision->cause))
            return; /* its end is reported when it comes */
        event.kind = BH_FUTURE_EVENT_REQUEUED;
        break;
    case BH_DO_CLAIM:
    case BH_DO_UNCLAIM:
    case BH_DO_RESERVE:
    case BH_DO_UNRESERVE:
    case BH_DO_WARM:
    case BH_DO_CLEAR:
    case BH_DECISION_KINDS:
        return;
    }
    future_notify(future, event);
}

/* A moved job makes way by command, not by decision. */
static void
future_notify_moves(struct bh_future *future, const struct bh_ev_move *move)
{
    for (uint32_t i = 0; i < move->move_count; i++)
        future_notify(future, (struct bh_future_event){ .kind = BH_FUTURE_EVENT_REQUEUED,
                                                        .job = move->moves[i].job,
                                                        .for_job = move->for_job,
                                                        .cause = BH_END_MOVED });
}

/* ---- answers ---- */

static bool
future_of_partition(enum bh_effect_kind kind)
{
    return kind == BH_FX_CARVE || kind == BH_FX_DESTROY;
}

static bool
future_of_gpu(enum bh_effect_kind kind)
{
    return kind == BH_FX_RESET || kind == BH_FX_TEST;
}

/* Whose the answer will be. */
static uint64_t
future_subject_of(const struct bh_effect *effect)
{
    if (future_of_partition(effect->kind))
        return effect->partition.partition.v;
    return future_of_gpu(effect->kind) ? effect->partition.gpu.v : effect->lease.v;
}

static void
future_enqueue(struct bh_future *future, const struct bh_future_order *order)
{
    uint32_t at = (future->first + future->count) % BH_FUTURE_QUEUE_MAX;

    if (future->count == BH_FUTURE_QUEUE_MAX) {
        future->spilled = true;
        return;
    }
    future->queue[at] = *order;
    future->count++;
}

/* What the step brought: news are reported, orders wait to be answered. */
static void
future_answer_step(struct bh_future *future)
{
    const struct bh_step *step = &future->step;

    for (uint32_t i = 0; i < step->decision_count; i++)
        future_notify_decision(future, &step->decisions[i]);
    for (uint32_t i = 0; i < step->effect_count; i++) {
        const struct bh_effect *effect = &step->effects[i];

        if (effect->kind != BH_FX_JOB)
            future_enqueue(
                future, &(struct bh_future_order){ effect->kind, effect->order, future_subject_of(effect) });
        else if (effect->state >= BH_JOB_COMPLETED)
            future_notify(future, (struct bh_future_event){ .kind = BH_FUTURE_EVENT_ENDS,
                                                            .job = effect->job,
                                                            .cause = effect->cause });
    }
}

static bool
future_node_answers(const struct bh_engine *engine, uint32_t node)
{
    return node_at(engine, node)->up;
}

/* Ordered to end before the future begins, and it may use its grace to the end: such a lease ends
 * by the clock alone, also as one of several at that moment. */
static bool
future_has_grace(const struct bh_future *future, const struct lease *lease)
{
    return lease->state == LEASE_STOPPING && lease->order >> BH_ORDER_BITS < FIRST_SEQ
           && lease->kill_ns > future->begin_ns;
}

/* Whether the order still waits for its answer, and will get one now. */
static bool
future_is_due(const struct bh_future *future, const struct bh_future_order *order)
{
    const struct bh_engine *engine = future->engine;
    uint32_t slot =
        future_of_partition(order->kind) ? partition_find(engine, order->id) : lease_find(engine, order->id);

    if (future_of_gpu(order->kind)) {
        const struct gpu *gpu = gpu_at(engine, gpu_find(engine, order->id));

        return gpu->health.waiting == order->kind + 1 && gpu->health.order == order->order
               && future_node_answers(engine, gpu->node);
    }
    if (future_of_partition(order->kind)) {
        const struct partition *partition = partition_at(engine, slot);

        return slot && partition->waiting == order->kind + 1 && partition->order == order->order
               && future_node_answers(engine, gpu_at(engine, partition->gpu)->node);
    }
    return slot && lease_at(engine, slot)->waiting == order->kind + 1
           && lease_at(engine, slot)->order == order->order
           && future_node_answers(engine, lease_at(engine, slot)->node)
           && !future_has_grace(future, lease_at(engine, slot));
}

/* Collect what waits for an answer from the tables: destructions before what relies on
 * them. */
static void
future_inspect_tables(struct bh_future *future)
{
    const struct bh_engine *engine = future->engine;

    BH_ASSERT(future->count == 0);
    future->spilled = false;
    for (int pass = BH_FX_DESTROY; pass >= BH_FX_CARVE; pass--)
        for (uint32_t slot = 0; bh_slot_next(engine, TABLE_PARTITION, &slot);) {
            const struct partition *partition = partition_at(engine, slot);
            struct bh_future_order order = { (enum bh_effect_kind)pass, partition->order, partition->id };

            if (future_is_due(future, &order))
                future_enqueue(future, &order);
        }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);
        struct bh_future_order order = { (enum bh_effect_kind)(lease->waiting - 1), lease->order, lease->id };

        if (lease->waiting && future_is_due(future, &order))
            future_enqueue(future, &order);
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(engine, slot);
        struct bh_future_order order = { (enum bh_effect_kind)(gpu->health.waiting - 1), gpu->health.order,
                                         gpu->id };

        if (gpu->health.waiting && future_is_due(future, &order))
            future_enqueue(future, &order);
    }
}

/* The event that answers an order well. */
static struct bh_event
future_answer(const struct bh_future *future, const struct bh_future_order *order)
{
    static const uint8_t kinds[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = BH_EV_CARVED,      [BH_FX_DESTROY] = BH_EV_DESTROYED, [BH_FX_START] = BH_EV_STARTED,
        [BH_FX_SUSPEND] = BH_EV_SUSPENDED, [BH_FX_RESUME] = BH_EV_RESUMED,    [BH_FX_STOP] = BH_EV_ENDED,
        [BH_FX_RESET] = BH_EV_SERVICED,    [BH_FX_TEST] = BH_EV_SERVICED,
    };
    struct bh_event event = { .kind = (enum bh_event_kind)kinds[order->kind] };

    if (future_of_partition(order->kind))
        event.u.partition = (struct bh_ev_partition){ { order->id }, BH_OUTCOME_OK, 0 };
    else if (future_of_gpu(order->kind))
        event.u.serviced = (struct bh_ev_serviced){ { (uint32_t)order->id }, BH_OUTCOME_OK, 0 };
    else if (order->kind == BH_FX_STOP)
        event.u.ended = (struct bh_ev_ended){
            .lease = { order->id }, .cause = BH_END_SIGNALLED, .exit_status = 143, .ended_ns = future->now_ns
        };
    else
        event.u.lease = (struct bh_ev_lease){ { order->id }, BH_OUTCOME_OK, 0 };
    return event;
}

/* Take an event, deciding at once or when all that happens at this moment has happened:
 * then a tick decides, for an engine that knows what happened and not what to do looks
 * at everything again. */
static bh_rc
future_step_event(struct bh_future *future, const struct bh_event *event, bool decide)
{
    struct bh_event now = *event;
    bh_rc rc;

    now.now_ns = future->now_ns;
    now.seq = future->seq;
    rc = decide ? bh_engine_step(future->engine, &now, &future->step)
                : bh_engine_replay(future->engine, &now, NULL, 0, &future->step);
    if (rc != BH_OK)
        return rc;
    future->seq++;
    future->steps++;
    if (now.kind == BH_EV_MOVE)
        future_notify_moves(future, &now.u.move);
    future_answer_step(future);
    return BH_OK;
}

bh_rc
bh_future_send(struct bh_future *future, const struct bh_event *event)
{
    return future_step_event(future, event, true);
}

/* Answer the oldest order; one that is no longer wanted is dropped.  BH_FULL: the answer
 * is still to be given. */
static bh_rc
future_answer_first(struct bh_future *future)
{
    const struct bh_future_order order = future->queue[future->first];
    struct bh_event event = future_answer(future, &order);
    bh_rc rc = BH_OK;

    if (future_is_due(future, &order))
        rc = future_step_event(future, &event, false);
    if (rc == BH_FULL)
        return rc;
    future->first = (future->first + 1) % BH_FUTURE_QUEUE_MAX;
    future->count--;
    return BH_OK;
}

/* ---- time ---- */

static uint64_t
future_later(uint64_t at_ns, uint64_t span_ns)
{
    return span_ns > UINT64_MAX - at_ns ? UINT64_MAX : at_ns + span_ns;
}

/* When a lease without a time limit is assumed to end, or one that was ordered to end is killed;
 * or UINT64_MAX. */
static uint64_t
future_assumed_end_ns(const struct bh_future *future, uint32_t slot)
{
    const struct lease *lease = lease_at(future->engine, slot);
    const struct job *job = job_at(future->engine, lease->job);
    uint64_t runs_ns = future->options.assumed_ns;

    if (future_has_grace(future, lease) && future_node_answers(future->engine, lease->node))
        return lease->kill_ns;
    if (job->time_limit_ns || job->kind != BH_JOB_BATCH || lease->state != LEASE_RUNNING
        || !future_node_answers(future->engine, lease->node))
        return UINT64_MAX;
    if (job->started_ns < future->begin_ns && future->begin_ns - job->started_ns >= runs_ns)
        runs_ns = future_later(future->begin_ns - job->started_ns, future->begin_ns - job->started_ns);
    return future_later(lease->since_ns, runs_ns > lease->ran_ns ? runs_ns - lease->ran_ns : 0);
}

static uint64_t
future_first_end_ns(const struct bh_future *future, uint32_t *ret_lease)
{
    uint64_t first_ns = UINT64_MAX;

    *ret_lease = 0;
    for (uint32_t slot = 0; bh_slot_next(future->engine, TABLE_LEASE, &slot);) {
        uint64_t end_ns = future_assumed_end_ns(future, slot);

        if (end_ns < first_ns) {
            first_ns = end_ns;
            *ret_lease = slot;
        }
    }
    return first_ns;
}

static struct bh_event
future_ending(const struct bh_future *future, uint32_t lease)
{
    struct bh_event event = { .kind = BH_EV_ENDED };

    if (lease_at(future->engine, lease)->state == LEASE_STOPPING)
        return future_answer(future,
                             &(struct bh_future_order){ BH_FX_STOP, 0, lease_at(future->engine, lease)->id });
    event.u.ended = (struct bh_ev_ended){ .lease = { lease_at(future->engine, lease)->id },
                                          .cause = BH_END_EXITED,
                                          .ended_ns = future->now_ns,
                                          .unasked = true };
    return event;
}

/* All is answered: the clock moves to what comes next. */
static enum bh_future_end
future_move_on(struct bh_future *future)
{
    uint32_t lease;
    uint64_t end_ns = future_first_end_ns(future, &lease);
    uint64_t tick_ns = bh_engine_next_tick_ns(future->engine);
    uint64_t next_ns = tick_ns < end_ns ? tick_ns : end_ns;
    struct bh_event event = { .kind = BH_EV_TICK };
    bh_rc rc;

    if (next_ns == UINT64_MAX)
        return BH_FUTURE_QUIET;
    if (next_ns > future->end_ns)
        return BH_FUTURE_HORIZON;
    future->now_ns = next_ns > future->now_ns ? next_ns : future->now_ns;
    if (end_ns == next_ns)
        event = future_ending(future, lease);
    rc = future_step_event(future, &event, event.kind == BH_EV_TICK);
    if (rc == BH_FULL)
        return BH_FUTURE_FULL;
    return rc == BH_OK ? BH_FUTURE_MORE : BH_FUTURE_QUIET;
}

/* Pending jobs that are not released. */
static uint32_t
future_held_jobs(const struct bh_engine *engine)
{
    uint32_t held = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);)
        held += class_at(engine, slot)->hold ? class_at(engine, slot)->jobs : 0;
    return held;
}

static bool
future_is_done(const struct bh_future *future)
{
    const struct bh_engine *engine = future->engine;

    if (future->options.until.v)
        return future->met;
    return engine->core.pending == 0 || engine->core.pending == future_held_jobs(engine);
}

void
bh_future_begin(struct bh_future *future, struct bh_engine *engine, const struct bh_future_options *options)
{
    future->engine = engine;
    future->options = *options;
    if (!options->assumed_ns)
        future->options.assumed_ns = BH_FUTURE_ASSUMED_NS;
    future->now_ns = options->now_ns > engine->core.now_ns ? options->now_ns : engine->core.now_ns;
    future->begin_ns = future->now_ns;
    future->end_ns =
        future_later(future->now_ns, options->horizon_ns ? options->horizon_ns : BH_FUTURE_HORIZON_NS);
    future->seq = FIRST_SEQ;
    future->steps = 0;
    future->met = false;
    future->spilled = true;
    future->first = future->count = 0;
}

enum bh_future_end
bh_future_run(struct bh_future *future, uint32_t budget)
{
    enum bh_future_end end = BH_FUTURE_MORE;

    for (; budget > 0 && end == BH_FUTURE_MORE; budget--) {
        if (future->count == 0 && future->spilled)
            future_inspect_tables(future);
        if (future->count == 0 && future_is_done(future))
            return BH_FUTURE_DONE;
        if (future->count == 0)
            end = future_move_on(future);
        else if (future_answer_first(future) == BH_FULL)
            end = BH_FUTURE_FULL;
    }
    return end;
}
