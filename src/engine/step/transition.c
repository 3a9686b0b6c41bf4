#include "engine/step/transition.h"

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/account/usage.h"
#include "engine/gpu/cordon.h"
#include "engine/gpu/exclusive.h"
#include "engine/gpu/gpu_form.h"
#include "engine/gpu/health.h"
#include "engine/gpu/layout.h"
#include "engine/gpu/ledger.h"
#include "engine/gpu/node_index.h"
#include "engine/gpu/partition.h"
#include "engine/gpu/pool.h"
#include "engine/gpu/unchecked.h"
#include "engine/placement/tenant_change.h"
#include "engine/placement/warm.h"
#include "engine/preempt/move.h"
#include "engine/preempt/reserve.h"
#include "engine/queue/jobs.h"
#include "engine/queue/lease.h"
#include "engine/state/effect.h"
#include "engine/state/slots.h"
#include "engine/state/sound.h"
#include "engine/state/wake.h"

enum { RETRIES_MAX = 64 }; /* partitions tried again in one step */

/* ---- time ---- */

/* Try again to destroy what could not be destroyed before. */
static void
transition_retry_stuck(struct work *work, uint32_t gpu_slot, uint32_t *retries)
{
    struct gpu *gpu = gpu_at(work->engine, gpu_slot);
    bool put_off = false;

    if (gpu->health.state == BH_HEALTH_RESETTING)
        return; /* it goes with the rest */
    for (uint32_t at = gpu->stuck ? gpu->first_partition : 0; at && *retries < RETRIES_MAX;
         at = bh_partition_after(work->engine, at)) {
        if (!partition_at(work->engine, at)->stuck || partition_at(work->engine, at)->waiting
            || bh_partition_is_given_up(work->engine, at))
            continue;
        if (!bh_exclusive_with(work->engine, gpu_slot, partition_at(work->engine, at)->cleared_for)) {
            put_off = true;
            continue;
        }
        bh_effect_partition(work, BH_FX_DESTROY, at);
        ++*retries;
    }
    if (put_off)
        gpu->retry_ns = work->now_ns + BH_PARTITION_RETRY_NS;
    else if (*retries < RETRIES_MAX)
        gpu->retry_ns = 0;
    work->engine->hints.due_known = work->engine->hints.due_known && !gpu->stuck;
}

/* Whether a node's GPUs are as many as it says, and what is counted of them. */
static bool
transition_node_counts(const struct bh_engine *engine, uint32_t slot)
{
    const struct node *node = node_at(engine, slot);
    uint32_t gpus = node->gpu_count, empty = node->empty, open = node->open;

    for (uint32_t gpu = node->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu)) {
        gpus--;
        empty -= (gpu_at(engine, gpu)->counted & GPU_EMPTY) != 0;
        open -= (gpu_at(engine, gpu)->counted & GPU_OPEN) != 0;
    }
    return (gpus | empty | open) == 0;
}

/* Whether sums over few rows are what they were kept to be: a tick has the time to look. */
static bool
transition_counts_hold(const struct bh_engine *engine)
{
    const struct core *core = &engine->core;
    uint32_t declared = core->declared, served = core->to_service, unchecked = core->unchecked;
    uint32_t dedicated = core->dedicated, claims = core->claim_count, reserved = core->reserved;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);) {
        unchecked -= node_at(engine, slot)->unchecked;
        if (!bh_sound_node(engine, slot) || !transition_node_counts(engine, slot))
            return false;
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        declared -= gpu_at(engine, slot)->wanted.mode != BH_LAYOUT_UNDECLARED;
        served -= gpu_at(engine, slot)->health.served;
        if (!bh_sound_gpu(engine, slot))
            return false;
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        dedicated -= tenant_at(engine, slot)->dedicated;
        if (!bh_sound_tenant(engine, slot))
            return false;
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_SKU, &slot);)
        if (!bh_sound_sku(engine, slot))
            return false;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        claims -= core->claims[i].job != 0;
        reserved -= core->claims[i].at_ns != 0;
    }
    return (declared | served | unchecked | dedicated | claims | reserved) == 0;
}

static void
transition_on_tick(struct work *work, const struct bh_event *event)
{
    struct bh_engine *engine = work->engine;
    uint32_t retries = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);)
        if (bh_gpu_retry_ns(engine, slot) <= work->now_ns && retries < RETRIES_MAX)
            transition_retry_stuck(work, slot, &retries);
    BH_ASSERT(transition_counts_hold(engine));
    bh_warm_tick(engine);
    bh_layout_tick(engine);
    engine->hints.settled = false;
}

/* ---- what events are about ---- */

static bool
transition_tenant_sound(const struct bh_engine *engine, uint32_t tenant)
{
    return !tenant || bh_sound_tenant(engine, tenant);
}

static bool
transition_node_sound(const struct bh_engine *engine, uint32_t node)
{
    return !node || bh_sound_node(engine, node);
}

static bool
transition_gpu_sound(const struct bh_engine *engine, uint32_t gpu)
{
    return !gpu || (bh_sound_gpu(engine, gpu) && bh_sound_node(engine, gpu_at(engine, gpu)->node));
}

static bool
transition_job_sound(const struct bh_engine *engine, uint32_t job)
{
    uint32_t class = job_at(engine, job)->class;

    return bh_sound_job(engine, job) && (!class || bh_sound_class(engine, class));
}

/* ---- configuration ---- */

static void
transition_on_tenant(struct work *work, const struct bh_event *event)
{
    bh_tenant_set(work->engine, &event->u.tenant);
    bh_wake_window(work->engine);
}

static void
transition_on_tenant_remove(struct work *work, const struct bh_event *event)
{
    bh_tenant_remove(work->engine, event->u.tenant.tenant);
    work->engine->hints.swept = false;
    bh_wake_below(work->engine, 0);
    bh_wake_window(work->engine);
}

static void
transition_on_sku(struct work *work, const struct bh_event *event)
{
    struct bh_engine *engine = work->engine;
    const struct bh_ev_sku *settings = &event->u.sku;
    uint32_t slot = sku_find(engine, settings->sku.v);
    struct sku *sku;

    if (!slot)
        slot = bh_slot_add(engine, TABLE_SKU, settings->sku.v);
    sku = sku_at(engine, slot);
    sku->grade = settings->grade;
    sku->model_count = settings->model_count;
    sku->price = settings->price;
    for (uint32_t i = 0; i < BH_SKU_MODELS_MAX; i++) {
        bool used = i < settings->model_count;

        sku->models[i] = used ? settings->models[i].model : 0;
        sku->profiles[i] = used ? settings->models[i].profile : 0;
        sku->equivalents[i] = used ? (uint32_t)bh_quota_equivalent(sku->profiles[i], 1) : 0;
    }
    sku->forms = bh_gpu_form_offered(sku);
    bh_gpu_form_recount(engine);
    bh_quota_recount(engine);
    bh_wake_window(engine);
}

static void
transition_on_sku_remove(struct work *work, const struct bh_event *event)
{
    bh_slot_remove(work->engine, TABLE_SKU, sku_find(work->engine, event->u.sku.sku.v));
    bh_gpu_form_recount(work->engine);
    bh_wake_window(work->engine); /* what was kept back of it is free */
}

/* ---- nodes and GPUs ---- */

static void
transition_on_node(struct work *work, const struct bh_event *event)
{
    struct bh_engine *engine = work->engine;
    uint32_t slot = node_find(engine, event->u.node.node.v), retries = 0;
    struct node *node;

    if (!slot)
        slot = bh_slot_add(engine, TABLE_NODE, event->u.node.node.v);
    node = node_at(engine, slot);
    node->up = event->u.node.up;
    if (node->up) {
        node->cpu_milli = event->u.node.cpu_milli;
        node->memory_mib = event->u.node.memory_mib;
        bh_node_index_invalidate(engine, slot);
    }
    engine->hints.due_known = false;
    for (uint32_t gpu = node->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu)) {
        bh_partition_node_changed(work, gpu);
        if (node->up)
            transition_retry_stuck(work, gpu, &retries);
    }
    bh_wake_window(engine);
}

static void
transition_link_to_node(struct bh_engine *engine, uint32_t slot, uint32_t node_slot)
{
    struct gpu *gpu = gpu_at(engine, slot);
    uint32_t *link = &node_at(engine, node_slot)->first_gpu;

    while (*link && gpu_at(engine, *link)->id < gpu->id)
        link = &gpu_at(engine, *link)->next_on_node;
    gpu->node = node_slot;
    gpu->next_on_node = *link;
    *link = slot;
    node_at(engine, node_slot)->gpu_count++;
    node_at(engine, node_slot)->models |= 1u << gpu->model;
    bh_node_index_invalidate(engine, node_slot);
}

static void
transition_on_gpu(struct work *work, const struct bh_event *event)
{
    struct bh_engine *engine = work->engine;
    const struct bh_ev_gpu *report = &event->u.gpu;
    uint32_t slot = gpu_find(engine, report->gpu.v), retries = 0;
    struct gpu *gpu;

    if (!slot) {
        slot = bh_slot_add(engine, TABLE_GPU, report->gpu.v);
        gpu_at(engine, slot)->model = report->model;
        bh_pool_add_model(engine, report->model);
        transition_link_to_node(engine, slot, node_find(engine, report->node.v));
        engine->core.totals.rate_physical += BH_GPU_PARTS;
    }
    gpu = gpu_at(engine, slot);
    gpu->managed = report->managed;
    if (gpu->cordoned && !report->cordoned)
        bh_partition_retry(work, slot);
    gpu->cordoned = report->cordoned;
    gpu->fenced = !report->fenced ? FENCE_NONE : report->keeps ? FENCE_KEEPS : FENCE_ENDS;
    gpu->mig_capable = report->mig_capable;
    engine->hints.due_known = engine->hints.due_known && !gpu->stuck; /* nothing is due else */
    gpu->link = (uint8_t)report->link;
    gpu->numa = (uint8_t)report->numa;
    gpu->layout = (uint8_t)report->layout;
    gpu->lone_carve = report->lone_carve;
    gpu->share_limit = report->share_limit;
    bh_partition_limit_shares(gpu);
    bh_ledger_refresh(engine, slot);
    if (gpu->fenced != FENCE_ENDS)
        transition_retry_stuck(work, slot, &retries);
    else
        engine->hints.swept = false;
    bh_wake_window(engine);
}

/* ---- partitions ---- */

/* A partition that is not there: its lease ends, or was never complete. */
static void
transition_miss_partition(struct work *work, uint32_t slot, uint32_t rc)
{
    struct bh_engine *engine = work->engine;
    const struct partition *partition = partition_at(engine, slot);
    bool carving = partition->state == BH_PARTITION_CARVING;
    uint32_t lease = partition->lease;
    struct lease_change change = { .event = carving ? LEASE_CARVE_FAILED : LEASE_STOP,
                                   .cause = BH_END_GPU_LOST,
                                   .gpu = (uint32_t)gpu_at(engine, partition->gpu)->id };

    if (!lease) {
        uint32_t gpu = partition->gpu;

        if (carving && partition->tenant == 0 && !bh_layout_failed(work, slot, rc))
            bh_warm_failed(engine);
        if (carving && partition->unclean)
            bh_partition_quarantine(work, slot);
        else
            bh_partition_drop(work, slot);
        bh_layout_update(engine, gpu);
        return;
    }
    bh_partition_set_lost(work, slot);
    BH_ASSERT(bh_lease_allows(engine, lease, change.event));
    if (carving)
        bh_lease_step(work, lease, &change);
    else
        bh_lease_step_all(work, lease_at(engine, lease)->job, &change);
}

static void
transition_on_carved(struct work *work, const struct bh_event *event)
{
    uint32_t slot = partition_find(work->engine, event->u.partition.partition.v);
    uint32_t lease = partition_at(work->engine, slot)->lease;

    if (event->u.partition.outcome == BH_OUTCOME_UNCLEAN)
        bh_partition_set_unclean(work, slot);
    if (event->u.partition.outcome != BH_OUTCOME_OK) {
        transition_miss_partition(work, slot, event->u.partition.rc);
        return;
    }
    bh_partition_set_ready(work, slot);
    bh_layout_update(work->engine, partition_at(work->engine, slot)->gpu);
    if (lease)
        bh_lease_proceed(work, lease_at(work->engine, lease)->job);
}

static void
transition_on_destroyed(struct work *work, const struct bh_event *event)
{
    uint32_t slot = partition_find(work->engine, event->u.partition.partition.v);
    uint32_t gpu = partition_at(work->engine, slot)->gpu;

    if (event->u.partition.outcome == BH_OUTCOME_UNCLEAN)
        bh_partition_set_unclean(work, slot);
    if (event->u.partition.outcome == BH_OUTCOME_OK) {
        bh_partition_drop(work, slot);
        bh_layout_update(work->engine, gpu);
        return;
    }
    bh_partition_set_stuck(work, slot);
    if (partition_at(work->engine, slot)->cleared_for == 0)
        bh_layout_failed(work, slot, event->u.partition.rc);
}

static void
transition_on_partition_gone(struct work *work, const struct bh_event *event)
{
    transition_miss_partition(work, partition_find(work->engine, event->u.partition.partition.v), 0);
}

/* ---- leases ---- */

static void
transition_notify_lease(struct work *work, bh_lease_id id, enum lease_event event)
{
    bh_lease_step(work, lease_find(work->engine, id.v), &(struct lease_change){ .event = event });
}

static void
transition_on_started(struct work *work, const struct bh_event *event)
{
    bool well = event->u.lease.outcome == BH_OUTCOME_OK;
    struct lease_change change = { .event = well ? LEASE_STARTED : LEASE_START_FAILED,
                                   .at_ns = event->u.lease.at_ns,
                                   .elsewhere = event->u.lease.elsewhere,
                                   .refused = event->u.lease.refused,
                                   .scratch = event->u.lease.scratch };

    bh_lease_step(work, lease_find(work->engine, event->u.lease.lease.v), &change);
}

static void
transition_on_suspended(struct work *work, const struct bh_event *event)
{
    bool well = event->u.lease.outcome == BH_OUTCOME_OK;

    transition_notify_lease(work, event->u.lease.lease, well ? LEASE_SUSPENDED_OK : LEASE_SUSPEND_FAILED);
}

static void
transition_on_resumed(struct work *work, const struct bh_event *event)
{
    bool well = event->u.lease.outcome == BH_OUTCOME_OK;

    transition_notify_lease(work, event->u.lease.lease, well ? LEASE_RESUMED : LEASE_RESUME_FAILED);
}

static void
transition_on_ended(struct work *work, const struct bh_event *event)
{
    struct lease_change change = { .event = LEASE_ENDED,
                                   .cause = event->u.ended.cause,
                                   .exit_status = event->u.ended.exit_status,
                                   .unasked = event->u.ended.unasked,
                                   .completed = event->u.ended.completed,
                                   .at_ns = event->u.ended.at_ns,
                                   .elsewhere = event->u.ended.elsewhere };

    bh_lease_step(work, lease_find(work->engine, event->u.ended.lease.v), &change);
}

/* ---- commands ---- */

static void
transition_on_submit(struct work *work, const struct bh_event *event)
{
    bh_job_create(work, &event->u.submit);
}

static void
transition_on_cancel(struct work *work, const struct bh_event *event)
{
    uint32_t slot = job_find(work->engine, event->u.job.job.v);
    bool dataset = event->u.job.cause == BH_END_DATASET;
    struct lease_change change = { .event = LEASE_STOP,
                                   .cause = dataset ? BH_END_DATASET : BH_END_CANCELLED,
                                   .at_once = event->u.job.at_once };

    if (change.at_once) /* it does not run again: no later stop needs the grace */
        job_at(work->engine, slot)->grace_ns = 0;
    if (job_at(work->engine, slot)->lease)
        bh_lease_step_all(work, slot, &change);
    else
        bh_job_end(work, slot, dataset ? BH_JOB_FAILED : BH_JOB_CANCELLED, change.cause, 0);
    work->engine->hints.settled = false; /* its tenant may have no job left: engine/placement/warm.h */
}

static void
transition_on_settings(struct work *work, const struct bh_event *event)
{
    bh_usage_configure(work->engine, &event->u.settings);
    bh_reserve_forget_ends(work->engine);
    bh_wake_below(work->engine, 0);
    bh_move_configure(work->engine, &event->u.settings.defrag);
    bh_wake_window(work->engine);
}

static void
transition_on_advice(struct work *work, const struct bh_event *event)
{
    const struct bh_ev_advice *advice = &event->u.advice;
    struct bh_engine *engine = work->engine;

    if (advice->of == BH_ADVICE_TENANT) {
        uint32_t tenant = tenant_find(engine, advice->tenant.v);

        if (tenant) /* one that was leaving may be gone by this moment */
            bh_tenant_expect(engine, tenant, advice->expected);
        bh_wake_queue(engine);
    } else if (advice->of == BH_ADVICE_NODE) {
        node_at(engine, node_find(engine, advice->node.v))->hot = advice->hot;
    } else {
        bh_warm_set(engine, advice->profile, advice->ready);
    }
}

static void
transition_on_move(struct work *work, const struct bh_event *event)
{
    bh_move_run(work, &event->u.move);
}

static void
transition_on_layout(struct work *work, const struct bh_event *event)
{
    bh_layout_set(work, &event->u.gpu_layout);
}

static void
transition_on_health(struct work *work, const struct bh_event *event)
{
    bh_health_fault(work, &event->u.health);
}

static void
transition_on_serviced(struct work *work, const struct bh_event *event)
{
    bh_health_serviced(work, &event->u.serviced);
}

static void
transition_on_cordon(struct work *work, const struct bh_event *event)
{
    bh_cordon_set(work, &event->u.cordon);
}

static void
transition_on_checked(struct work *work, const struct bh_event *event)
{
    bh_unchecked_checked(work, &event->u.checked);
}

static void
transition_on_release(struct work *work, const struct bh_event *event)
{
    bh_job_unhold(work, job_find(work->engine, event->u.job.job.v));
}

/* Whether the rows that the event is about are sound. */
static bool
transition_concerns_sound(const struct bh_engine *engine, const struct bh_event *event)
{
    switch ((int)event->kind) {
    case BH_EV_TENANT:
    case BH_EV_TENANT_REMOVE:
        return transition_tenant_sound(engine, tenant_find(engine, event->u.tenant.tenant.v));
    case BH_EV_NODE:
        return transition_node_sound(engine, node_find(engine, event->u.node.node.v));
    case BH_EV_GPU:
        return transition_gpu_sound(engine, gpu_find(engine, event->u.gpu.gpu.v));
    case BH_EV_HEALTH:
        return transition_gpu_sound(engine, gpu_find(engine, event->u.health.gpu.v));
    case BH_EV_SERVICED:
        return transition_gpu_sound(engine, gpu_find(engine, event->u.serviced.gpu.v));
    case BH_EV_CANCEL:
    case BH_EV_RELEASE:
        return transition_job_sound(engine, job_find(engine, event->u.job.job.v));
    default:
        return true;
    }
}

void
bh_transition(struct work *work, const struct bh_event *event)
{
    static void (*const on[BH_EVENT_KINDS])(struct work *, const struct bh_event *) = {
        [BH_EV_TICK] = transition_on_tick,
        [BH_EV_TENANT] = transition_on_tenant,
        [BH_EV_TENANT_REMOVE] = transition_on_tenant_remove,
        [BH_EV_SKU] = transition_on_sku,
        [BH_EV_SKU_REMOVE] = transition_on_sku_remove,
        [BH_EV_NODE] = transition_on_node,
        [BH_EV_GPU] = transition_on_gpu,
        [BH_EV_CARVED] = transition_on_carved,
        [BH_EV_DESTROYED] = transition_on_destroyed,
        [BH_EV_PARTITION_GONE] = transition_on_partition_gone,
        [BH_EV_STARTED] = transition_on_started,
        [BH_EV_SUSPENDED] = transition_on_suspended,
        [BH_EV_RESUMED] = transition_on_resumed,
        [BH_EV_ENDED] = transition_on_ended,
        [BH_EV_SUBMIT] = transition_on_submit,
        [BH_EV_CANCEL] = transition_on_cancel,
        [BH_EV_RELEASE] = transition_on_release,
        [BH_EV_SETTINGS] = transition_on_settings,
        [BH_EV_ADVICE] = transition_on_advice,
        [BH_EV_MOVE] = transition_on_move,
        [BH_EV_LAYOUT] = transition_on_layout,
        [BH_EV_HEALTH] = transition_on_health,
        [BH_EV_SERVICED] = transition_on_serviced,
        [BH_EV_CORDON] = transition_on_cordon,
        [BH_EV_CHECKED] = transition_on_checked,
    };

    BH_ASSERT((uint32_t)event->kind < BH_EVENT_KINDS);
    BH_ASSERT(transition_concerns_sound(work->engine, event));
    on[event->kind](work, event);
    bh_health_advance(work, event->kind == BH_EV_TICK);
}
