#include "engine/step/admit.h"

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/gpu/cordon.h"
#include "engine/gpu/health.h"
#include "engine/gpu/layout.h"
#include "engine/placement/limit.h"
#include "engine/placement/tenant_change.h"
#include "engine/preempt/move.h"
#include "engine/queue/jobs.h"
#include "engine/queue/lease.h"
#include "engine/state/slots.h"
#include "engine/state/sound.h"

enum {
    CLASSES_SPARE = 3, /* one event by itself queues at most so many jobs again or anew */
    GPU_PARTITIONS_MAX = 16,
};

static bh_rc
admit_refuse(struct bh_reason *ret_why, enum bh_reason_code code, bh_rc rc)
{
    ret_why->code = code;
    return rc;
}

/* ---- room in the tables ---- */

static uint32_t
admit_least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static bool
admit_has_capacity(struct bh_engine *engine, enum table_kind kind, uint32_t wanted, struct bh_reason *ret_why)
{
    struct bh_engine_caps *caps = &engine->wanted;
    uint32_t *const counts[TABLES] = {
        [TABLE_TENANT] = &caps->tenants,
        [TABLE_SKU] = &caps->skus,
        [TABLE_NODE] = &caps->nodes,
        [TABLE_GPU] = &caps->gpus,
        [TABLE_JOB] = &caps->jobs,
        [TABLE_LEASE] = &caps->leases,
        [TABLE_PARTITION] = &caps->partitions,
        [TABLE_CLASS] = &caps->classes,
        [TABLE_METERED] = &caps->metered,
    };

    if (bh_slots_free(engine, kind) >= wanted)
        return true;
    *caps = engine->caps;
    *counts[kind] = *counts[kind] < UINT32_MAX / 2 ? *counts[kind] * 2 : UINT32_MAX;
    ret_why->code = BH_REASON_TABLE_FULL;
    ret_why->wanted = wanted;
    return false;
}

/* Whether with this event some on the GPU may have to leave it. */
static bool
admit_takes_ground(const struct bh_engine *engine, const struct bh_event *event, const struct gpu *gpu)
{
    if (event->kind == BH_EV_GPU)
        return event->u.gpu.fenced && !event->u.gpu.keeps && gpu->id == event->u.gpu.gpu.v;
    if (event->kind == BH_EV_HEALTH)
        return event->u.health.ends != BH_ENDS_NOBODY && gpu->id == event->u.health.gpu.v;
    return event->kind == BH_EV_CORDON && event->u.cordon.held == BH_HELD_DRAIN_NOW
           && (gpu->id == event->u.cordon.gpu.v || node_at(engine, gpu->node)->id == event->u.cordon.node.v);
}

/* Whether the lease is being made on a GPU that is fenced, or is with this event: its job
 * is queued again at once. */
static bool
admit_falls_back(const struct bh_engine *engine, uint32_t slot, const struct bh_event *event)
{
    const struct lease *lease = lease_at(engine, slot);

    for (uint32_t i = 0; lease->state == LEASE_CARVING && i < lease->count; i++) {
        const struct gpu *gpu = gpu_at(engine, gpu_find(engine, lease->placements[i].gpu));

        if (gpu->fenced == FENCE_ENDS || bh_health_ends(engine, slot) != BH_END_NONE
            || admit_takes_ground(engine, event, gpu))
            return true;
    }
    return false;
}

/* Each of them may be the first of its class. */
static bool
admit_capacity_to_requeue(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint32_t most = admit_least(BH_DECISIONS_MAX, engine->tables[TABLE_LEASE].live), wanted = 0;

    if (bh_slots_free(engine, TABLE_CLASS) >= CLASSES_SPARE + most)
        return true;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);)
        wanted += admit_falls_back(engine, slot, event);
    return admit_has_capacity(engine, TABLE_CLASS, CLASSES_SPARE + admit_least(wanted, most), ret_why);
}

/* What the decisions of one step could take at most. */
static bool
admit_capacity_to_decide(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint32_t more = event->kind == BH_EV_SUBMIT ? event->u.submit.gang + 1 : 1;
    uint32_t placements = admit_least(BH_DECISIONS_MAX, (uint64_t)engine->core.pending_members + more);
    uint64_t on_gpus = (uint64_t)engine->tables[TABLE_GPU].live * GPU_PARTITIONS_MAX;
    uint32_t partitions = admit_least(on_gpus, (uint64_t)BH_DECISIONS_MAX * BH_JOB_COUNT_MAX);

    return admit_capacity_to_requeue(engine, event, ret_why)
           && admit_has_capacity(engine, TABLE_LEASE, placements, ret_why)
           && admit_has_capacity(engine, TABLE_PARTITION, partitions, ret_why);
}

static bool
admit_capacity_for(struct bh_engine *engine, enum table_kind kind, uint64_t id, struct bh_reason *ret_why)
{
    return bh_slot_find(engine, kind, id) || admit_has_capacity(engine, kind, 1, ret_why);
}

/* ---- configuration ---- */

static bh_rc
admit_tenant(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint64_t id = event->u.tenant.tenant.v;
    bh_rc rc = bh_tenant_check(engine, &event->u.tenant, ret_why);

    if (rc != BH_OK)
        return rc;
    if ((!admit_capacity_for(engine, TABLE_TENANT, id, ret_why)
         || !admit_capacity_for(engine, TABLE_METERED, id, ret_why)))
        return BH_FULL;
    return BH_OK;
}

static bh_rc
admit_tenant_remove(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    return bh_tenant_check_remove(engine, event->u.tenant.tenant, ret_why);
}

static bool
admit_sku_row_valid(const struct bh_sku_model *row)
{
    return row->model < BH_GPU_MODELS && bh_partition_exists((enum bh_gpu_model)row->model, row->profile);
}

static bh_rc
admit_sku(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    const struct bh_ev_sku *sku = &event->u.sku;

    ret_why->sku = sku->sku;
    if (sku->sku.v == 0 || (uint32_t)sku->grade >= BH_GRADES || sku->model_count > BH_SKU_MODELS_MAX
        || sku->price > BH_AMOUNT_MAX)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    for (uint32_t i = 0; i < sku->model_count; i++)
        if (!admit_sku_row_valid(&sku->models[i]))
            return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    return admit_capacity_for(engine, TABLE_SKU, sku->sku.v, ret_why) ? BH_OK : BH_FULL;
}

static bh_rc
admit_sku_remove(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint32_t slot = sku_find(engine, event->u.sku.sku.v);
    uint32_t gone = 0;

    ret_why->sku = event->u.sku.sku;
    if (!slot)
        return admit_refuse(ret_why, BH_REASON_UNKNOWN_SKU, BH_NOT_FOUND);
    for (uint32_t at = engine->core.ended_head; at; at = job_at(engine, at)->next)
        gone += job_at(engine, at)->sku == slot;
    ret_why->used = sku_at(engine, slot)->jobs - gone;
    return ret_why->used ? admit_refuse(ret_why, BH_REASON_SKU_BUSY, BH_CONFLICT) : BH_OK;
}

/* ---- reports of nodes ---- */

static bh_rc
admit_node(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    if (event->u.node.node.v == 0)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    return admit_capacity_for(engine, TABLE_NODE, event->u.node.node.v, ret_why) ? BH_OK : BH_FULL;
}

static bh_rc
admit_gpu(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    const struct bh_ev_gpu *report = &event->u.gpu;
    uint32_t slot = gpu_find(engine, report->gpu.v);
    const struct gpu *gpu = gpu_at(engine, slot);

    ret_why->gpu = report->gpu;
    if (report->gpu.v == 0 || report->model >= BH_GPU_MODELS
        || (report->mig_capable && report->model == BH_GPU_MODEL_NONE) || report->link > UINT8_MAX
        || report->numa > UINT8_MAX || (uint32_t)report->layout >= BH_POOL_LAYOUTS
        || report->share_limit > BH_SHARE_OVERSUBSCRIBE_MAX * BH_GPU_PARTS)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    if (!node_find(engine, report->node.v))
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
    if (slot && (gpu->model != report->model || node_at(engine, gpu->node)->id != report->node.v))
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_CONFLICT);
    return admit_capacity_for(engine, TABLE_GPU, report->gpu.v, ret_why) ? BH_OK : BH_FULL;
}

/* The partition waits for the answer to this effect. */
static bh_rc
admit_answer(struct bh_engine *engine, const struct bh_event *event, enum bh_effect_kind effect,
             struct bh_reason *ret_why)
{
    uint32_t slot = partition_find(engine, event->u.partition.partition.v);
    const struct partition *partition = partition_at(engine, slot);

    if (!slot)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
    BH_ASSERT(bh_sound_partition(engine, slot));
    if (partition->waiting != effect + 1u)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_CONFLICT);
    if ((uint32_t)event->u.partition.outcome >= BH_OUTCOMES)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    return BH_OK;
}

static bh_rc
admit_carved(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    return admit_answer(engine, event, BH_FX_CARVE, ret_why);
}

static bh_rc
admit_destroyed(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    return admit_answer(engine, event, BH_FX_DESTROY, ret_why);
}

static bh_rc
admit_partition_gone(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint32_t slot = partition_find(engine, event->u.partition.partition.v);

    if (!slot)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
    if (partition_at(engine, slot)->gone)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_CONFLICT);
    return BH_OK;
}

static bh_rc
admit_lease(struct bh_engine *engine, bh_lease_id id, enum lease_event event, struct bh_reason *ret_why)
{
    uint32_t slot = lease_find(engine, id.v);

    if (!slot)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
    BH_ASSERT(bh_sound_lease(engine, slot) && bh_sound_job(engine, lease_at(engine, slot)->job));
    ret_why->job.v = job_at(engine, lease_at(engine, slot)->job)->id;
    if (!bh_lease_allows(engine, slot, event))
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_CONFLICT);
    return BH_OK;
}

static bh_rc
admit_started(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    bool well = event->u.lease.outcome == BH_OUTCOME_OK;

    return admit_lease(engine, event->u.lease.lease, well ? LEASE_STARTED : LEASE_START_FAILED, ret_why);
}

static bh_rc
admit_suspended(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    bool well = event->u.lease.outcome == BH_OUTCOME_OK;

    return admit_lease(engine, event->u.lease.lease, well ? LEASE_SUSPENDED_OK : LEASE_SUSPEND_FAILED,
                       ret_why);
}

static bh_rc
admit_resumed(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    bool well = event->u.lease.outcome == BH_OUTCOME_OK;

    return admit_lease(engine, event->u.lease.lease, well ? LEASE_RESUMED : LEASE_RESUME_FAILED, ret_why);
}

static bh_rc
admit_ended(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    if ((uint32_t)event->u.ended.cause >= BH_END_CAUSES)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    return admit_lease(engine, event->u.ended.lease, LEASE_ENDED, ret_why);
}

/* ---- commands ---- */

static bool
admit_submit_in_range(const struct bh_ev_submit *submit)
{
    return submit->job.v != 0 && submit->count >= 1 && submit->count <= BH_JOB_COUNT_MAX
           && submit->gang <= BH_JOB_GANG_MAX && submit->gang * submit->count <= BH_JOB_PARTITIONS_MAX
           && (uint32_t)submit->kind < BH_JOB_KINDS && submit->priority >= BH_PRIORITY_LOW
           && submit->priority < BH_PRIORITIES && (uint32_t)submit->contract < BH_CONTRACTS
           && submit->checkpoint_signal <= BH_SIGNAL_MAX;
}

/* Whether the job could end by its deadline if it began now. */
static bool
admit_meets_deadline(const struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    const struct bh_ev_submit *submit = &event->u.submit;
    uint64_t now_ns = event->now_ns > engine->core.now_ns ? event->now_ns : engine->core.now_ns;

    if (submit->deadline_ns == 0 || now_ns < bh_job_hopeless_ns(submit->deadline_ns, submit->time_limit_ns))
        return true;
    *ret_why = (struct bh_reason){ .code = BH_REASON_DEADLINE,
                                   .wanted = submit->time_limit_ns,
                                   .limit = submit->deadline_ns > now_ns ? submit->deadline_ns - now_ns : 0 };
    return false;
}

/* Whether the limits would allow some way to keep the SKU, if nothing else ran. */
static bool
admit_ever_allowed(const struct bh_engine *engine, const struct bh_ev_submit *submit,
                   struct bh_reason *ret_why)
{
    uint32_t slot = sku_find(engine, submit->sku.v);
    const struct sku *sku = sku_at(engine, slot);
    uint32_t partitions = submit->count * (submit->gang ? submit->gang : 1);

    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct bh_wanted wanted = { .tenant = tenant_find(engine, submit->tenant.v),
                                    .sku = slot,
                                    .count = partitions,
                                    .principal = submit->principal.v,
                                    .model = sku->models[row],
                                    .equivalent = (uint64_t)sku->equivalents[row] * partitions };

        if (bh_quota_ever(engine, &wanted, ret_why))
            return true;
    }
    return sku->model_count == 0;
}

static bh_rc
admit_submit(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    const struct bh_ev_submit *submit = &event->u.submit;
    uint32_t tenant = tenant_find(engine, submit->tenant.v);
    uint32_t sku = sku_find(engine, submit->sku.v);

    if (!admit_submit_in_range(submit)) {
        ret_why->wanted = submit->gang > 1 ? submit->count * submit->gang : submit->count;
        ret_why->limit = submit->gang > 1 ? BH_JOB_PARTITIONS_MAX : BH_JOB_COUNT_MAX;
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    }
    if (!tenant || tenant_at(engine, tenant)->removed) {
        ret_why->tenant = submit->tenant;
        return admit_refuse(ret_why, BH_REASON_UNKNOWN_TENANT, BH_NOT_FOUND);
    }
    if (!sku) {
        ret_why->sku = submit->sku;
        return admit_refuse(ret_why, BH_REASON_UNKNOWN_SKU, BH_NOT_FOUND);
    }
    if (job_find(engine, submit->job.v)) {
        ret_why->job = submit->job;
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_CONFLICT);
    }
    if (!admit_meets_deadline(engine, event, ret_why))
        return BH_RANGE;
    if (!admit_ever_allowed(engine, submit, ret_why))
        return BH_QUOTA;
    if (bh_slots_free(engine, TABLE_JOB) + engine->core.ended_count > 0)
        return BH_OK;
    return admit_has_capacity(engine, TABLE_JOB, 1, ret_why) ? BH_OK : BH_FULL;
}

static bh_rc
admit_cancel(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint32_t slot = job_find(engine, event->u.job.job.v);
    const struct job *job = job_at(engine, slot);
    enum bh_end_cause cause = event->u.job.cause;

    ret_why->job = event->u.job.job;
    if (cause != BH_END_NONE && cause != BH_END_CANCELLED && cause != BH_END_DATASET)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    if (!slot)
        return admit_refuse(ret_why, BH_REASON_UNKNOWN_JOB, BH_NOT_FOUND);
    if (job->state >= BH_JOB_COMPLETED)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_CONFLICT);
    BH_ASSERT(!job->lease || bh_lease_all_allow(engine, slot, LEASE_STOP));
    return BH_OK;
}

static bh_rc
admit_release(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint32_t slot = job_find(engine, event->u.job.job.v);

    ret_why->job = event->u.job.job;
    if (!slot)
        return admit_refuse(ret_why, BH_REASON_UNKNOWN_JOB, BH_NOT_FOUND);
    if (!job_at(engine, slot)->hold || job_at(engine, slot)->state != BH_JOB_PENDING)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_CONFLICT);
    return BH_OK;
}

static bh_rc
admit_settings(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    const uint64_t minute_ns = 60000000000ull, year_ns = 366 * 1440 * minute_ns;
    const struct bh_ev_settings *settings = &event->u.settings;
    const struct bh_defrag *defrag = &settings->defrag;
    bool decays = settings->half_life_ns != BH_UNLIMITED;
    uint64_t longest_ns = settings->assumed_run_ns > settings->min_runtime_ns ? settings->assumed_run_ns
                                                                              : settings->min_runtime_ns;

    ret_why->wanted = longest_ns;
    ret_why->limit = BH_SPAN_MAX_NS;
    if ((uint32_t)settings->order >= BH_ORDERS || (uint32_t)settings->lending >= BH_LENDINGS
        || longest_ns > BH_SPAN_MAX_NS || settings->burn_in_ns > BH_SPAN_MAX_NS)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    if ((uint32_t)defrag->mode >= BH_DEFRAG_MODES || defrag->gain_percent > BH_DEFRAG_PERCENT_MAX
        || defrag->lost_gpu_s > BH_DEFRAG_LOST_MAX_GPU_S || defrag->rest_ns > BH_SPAN_MAX_NS)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    if (!decays || (settings->half_life_ns >= minute_ns && settings->half_life_ns <= year_ns))
        return BH_OK;
    ret_why->wanted = settings->half_life_ns;
    ret_why->limit = year_ns;
    return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
}

static bool
admit_advice_in_range(const struct bh_ev_advice *advice)
{
    if (advice->of == BH_ADVICE_TENANT)
        return advice->expected <= BH_AMOUNT_MAX;
    if (advice->of == BH_ADVICE_NODE)
        return true;
    return advice->of == BH_ADVICE_PARTITIONS && advice->ready <= BH_READY_MAX
           && advice->profile < PROFILES_MAX && bh_profile_get((bh_profile_id){ advice->profile });
}

static bh_rc
admit_advice(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    const struct bh_ev_advice *advice = &event->u.advice;

    if (!admit_advice_in_range(advice))
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    ret_why->tenant = advice->tenant;
    if (advice->of == BH_ADVICE_TENANT && !tenant_find(engine, advice->tenant.v))
        return admit_refuse(ret_why, BH_REASON_UNKNOWN_TENANT, BH_NOT_FOUND);
    if (advice->of == BH_ADVICE_NODE && !node_find(engine, advice->node.v))
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
    return BH_OK;
}

static bh_rc
admit_move(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint64_t now_ns = event->now_ns > engine->core.now_ns ? event->now_ns : engine->core.now_ns;

    return bh_move_check(engine, &event->u.move, now_ns, ret_why);
}

static bh_rc
admit_layout(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    return bh_layout_admit(engine, &event->u.gpu_layout, ret_why);
}

static bh_rc
admit_health(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    const struct bh_ev_health *fault = &event->u.health;
    const struct partition *partition = partition_at(engine, partition_find(engine, fault->partition.v));

    ret_why->gpu = fault->gpu;
    if ((uint32_t)fault->ends >= BH_FAULT_ENDS || (uint32_t)fault->then >= BH_FAULT_THENS)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    if (!gpu_find(engine, fault->gpu.v))
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
    if (fault->ends == BH_ENDS_INSTANCE && gpu_at(engine, partition->gpu)->id != fault->gpu.v)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
    return BH_OK;
}

static bh_rc
admit_serviced(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    uint32_t slot = gpu_find(engine, event->u.serviced.gpu.v);

    ret_why->gpu = event->u.serviced.gpu;
    if ((uint32_t)event->u.serviced.outcome > BH_OUTCOME_CONTEXT_HELD)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    if (!slot)
        return admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
    return gpu_at(engine, slot)->health.waiting ? BH_OK
                                                : admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_CONFLICT);
}

static bh_rc
admit_cordon(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    bh_rc rc = bh_cordon_check(engine, &event->u.cordon);

    ret_why->gpu = event->u.cordon.gpu;
    return rc == BH_OK
               ? rc
               : admit_refuse(ret_why, rc == BH_RANGE ? BH_REASON_OUT_OF_RANGE : BH_REASON_WRONG_STATE, rc);
}

static bh_rc
admit_checked(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    if (event->u.checked.outcome != BH_OUTCOME_OK && event->u.checked.outcome != BH_OUTCOME_FAILED)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    return node_find(engine, event->u.checked.node.v)
               ? BH_OK
               : admit_refuse(ret_why, BH_REASON_WRONG_STATE, BH_NOT_FOUND);
}

bh_rc
bh_admit(struct bh_engine *engine, const struct bh_event *event, struct bh_reason *ret_why)
{
    static bh_rc (*const admit[BH_EVENT_KINDS])(struct bh_engine *, const struct bh_event *,
                                                struct bh_reason *) = {
        [BH_EV_TENANT] = admit_tenant,
        [BH_EV_TENANT_REMOVE] = admit_tenant_remove,
        [BH_EV_SKU] = admit_sku,
        [BH_EV_SKU_REMOVE] = admit_sku_remove,
        [BH_EV_NODE] = admit_node,
        [BH_EV_GPU] = admit_gpu,
        [BH_EV_CARVED] = admit_carved,
        [BH_EV_DESTROYED] = admit_destroyed,
        [BH_EV_PARTITION_GONE] = admit_partition_gone,
        [BH_EV_STARTED] = admit_started,
        [BH_EV_SUSPENDED] = admit_suspended,
        [BH_EV_RESUMED] = admit_resumed,
        [BH_EV_ENDED] = admit_ended,
        [BH_EV_SUBMIT] = admit_submit,
        [BH_EV_CANCEL] = admit_cancel,
        [BH_EV_RELEASE] = admit_release,
        [BH_EV_SETTINGS] = admit_settings,
        [BH_EV_ADVICE] = admit_advice,
        [BH_EV_MOVE] = admit_move,
        [BH_EV_LAYOUT] = admit_layout,
        [BH_EV_HEALTH] = admit_health,
        [BH_EV_SERVICED] = admit_serviced,
        [BH_EV_CORDON] = admit_cordon,
        [BH_EV_CHECKED] = admit_checked,
    };
    bh_rc rc = BH_OK;

    if ((uint32_t)event->kind >= BH_EVENT_KINDS)
        return admit_refuse(ret_why, BH_REASON_OUT_OF_RANGE, BH_RANGE);
    if (admit[event->kind])
        rc = admit[event->kind](engine, event, ret_why);
    if (rc != BH_OK)
        return rc;
    if (!admit_capacity_to_decide(engine, event, ret_why))
        rc = BH_FULL;
    if (rc != BH_OK)
        return rc;
    *ret_why = (struct bh_reason){ 0 };
    return BH_OK;
}
