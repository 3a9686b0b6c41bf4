#include "engine/read/why.h"

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/account/separation.h"
#include "engine/account/tenant.h"
#include "engine/account/usage.h"
#include "engine/gpu/gpu_form.h"
#include "engine/gpu/host.h"
#include "engine/gpu/ledger.h"
#include "engine/placement/placement.h"
#include "engine/placement/unschedulable.h"
#include "engine/preempt/move.h"
#include "engine/preempt/reserve.h"
#include "engine/queue/avoid.h"
#include "engine/queue/queue.h"
#include "engine/read/why_guarantee.h"
#include "engine/read/why_holder.h"
#include "engine/read/why_share.h"
#include "engine/state/gang.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"

static bh_sku_id
why_sku_of(const struct bh_engine *engine, uint32_t sku)
{
    return (bh_sku_id){ (uint32_t)sku_at(engine, sku)->id };
}

/* ---- jobs that have a lease ---- */

/* The job where a suspended lease wants to be again. */
static void
why_suspended(const struct bh_engine *engine, const struct lease *lease, struct bh_reason *reason)
{
    if (job_find(engine, lease->for_job)) {
        reason->job.v = lease->for_job;
        return;
    }
    for (uint32_t i = 0; i < lease->count; i++) {
        uint32_t gpu = gpu_find(engine, lease->placements[i].gpu);

        for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at))
            if (partition_at(engine, at)->lease)
                bh_why_name_holder(engine, partition_at(engine, at)->lease, reason);
    }
}

/* When the grace of a lease that stops is over. */
static void
why_report_kill(const struct bh_engine *engine, uint32_t slot, struct bh_reason *reason)
{
    const struct lease *lease = lease_at(engine, slot);

    if (lease->state == LEASE_STOPPING && lease->kill_ns > reason->frees_at_ns)
        reason->frees_at_ns = lease->kill_ns;
}

static void
why_leased(const struct bh_engine *engine, uint32_t job, struct bh_reason *reason)
{
    static const uint8_t codes[BH_JOB_STATES] = {
        [BH_JOB_STARTING] = BH_REASON_STARTING,    [BH_JOB_RUNNING] = BH_REASON_RUNNING,
        [BH_JOB_SUSPENDING] = BH_REASON_SUSPENDED, [BH_JOB_SUSPENDED] = BH_REASON_SUSPENDED,
        [BH_JOB_RESUMING] = BH_REASON_STARTING,    [BH_JOB_STOPPING] = BH_REASON_STOPPING,
    };
    uint32_t first = bh_gang_next(engine, job, 0);

    reason->code = (enum bh_reason_code)codes[job_at(engine, job)->state];
    if (reason->code == BH_REASON_STARTING)
        reason->gpu.v = lease_at(engine, first)->placements[0].gpu;
    for (uint32_t at = first; reason->code == BH_REASON_STOPPING && at; at = bh_gang_next(engine, job, at))
        why_report_kill(engine, at, reason);
    for (uint32_t at = first; reason->code == BH_REASON_SUSPENDED && at; at = bh_gang_next(engine, job, at))
        why_suspended(engine, lease_at(engine, at), reason);
}

/* ---- jobs that wait ---- */

/* GPUs that could serve a job, and what is in use and free on them. */
struct why_field {
    uint32_t serving, up;     /* GPUs: managed ones, and those that get new work */
    bool ever;                /* the nodes could hold all its members when empty, and the limits
                                 would allow it */
    bool shaped;              /* their GPUs could, whatever cores and memory they have */
    bool weaker;              /* some GPU could, by a form that its boundary keeps it from */
    struct bh_reason forbids; /* the limit that never allows a row that the nodes could hold */
    uint64_t used, free_parts;
    uint64_t wanted_parts;             /* of the smallest way to keep the SKU */
    enum bh_reason_code excluded_node; /* why one of them gets no work, or not all that it has; NONE */
    bh_gpu_id away_gpu;
    bool away_capacity; /* that one has room beside its leases */
};

/* How many partitions a node could hold if it were empty. */
static uint32_t
why_capacity_when_empty(const struct bh_engine *engine, const struct bh_need *need, uint32_t node,
                        uint32_t row)
{
    const struct sku *sku = sku_at(engine, need->sku);
    uint32_t capacity = 0;

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu)) {
        struct bh_occupancy empty = { .share_limit = gpu_at(engine, gpu)->share_limit };

        if (gpu_at(engine, gpu)->managed
            && bh_placement_serves(engine, gpu_at(engine, gpu), need->tenant, sku, row))
            capacity += bh_partition_capacity(&empty, (enum bh_gpu_model)gpu_at(engine, gpu)->model,
                                              sku->profiles[row]);
    }
    return capacity;
}

static bool
why_is_leased(const struct partition *partition)
{
    return partition->state == BH_PARTITION_CARVING || partition->state == BH_PARTITION_LEASED;
}

/* Whether a partition of the profile would stand beside what is leased. */
static bool
why_has_capacity_beside(const struct bh_engine *engine, const struct gpu *gpu, uint32_t profile)
{
    struct bh_occupancy leased = { .share_limit = gpu->share_limit };
    enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;

    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (why_is_leased(partition))
            bh_partition_block(&leased, model, partition->profile, partition->start);
    }
    return bh_partition_capacity(&leased, model, profile) > 0;
}

/* Why the GPU gets no work.  One that others have all of is no reason while another has room; a
 * node that is down may never come back. */
static void
why_survey_unschedulable(const struct bh_engine *engine, const struct gpu *gpu, uint32_t profile,
                         struct why_field *field)
{
    enum bh_reason_code excluded_node = bh_unschedulable_reason(engine, gpu);
    bool capacity, first;

    if (excluded_node == BH_REASON_NONE)
        return;
    capacity = excluded_node != BH_REASON_NODE_DOWN && why_has_capacity_beside(engine, gpu, profile);
    first = excluded_node != field->excluded_node
            && bh_unschedulable_first(excluded_node, field->excluded_node) == excluded_node;
    if (capacity == field->away_capacity ? !first : !capacity)
        return;
    field->excluded_node = excluded_node;
    field->away_gpu.v = (uint32_t)gpu->id;
    field->away_capacity = capacity;
}

static void
why_survey_gpu(const struct bh_engine *engine, uint32_t slot, uint32_t profile, struct why_field *field)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    bool share = bh_profile_is_share((bh_profile_id){ profile }), other_mode = false;
    struct bh_parts used = { 0, 0 };

    field->serving++;
    why_survey_unschedulable(engine, gpu, profile, field);
    if (!bh_capacity_offered(engine, gpu))
        return;
    field->up++;
    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (!why_is_leased(partition))
            continue;
        used = bh_parts_add(used, bh_ledger_charge(gpu, partition->profile));
        field->used++;
        other_mode = other_mode || bh_profile_is_share((bh_profile_id){ partition->profile }) != share;
    }
    if (!other_mode) /* a GPU is carved or shared, and what is free one way is not free the other */
        field->free_parts += BH_GPU_PARTS - bh_parts_equivalent(used);
}

static uint32_t
why_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Whether the nodes could hold all members by the row if they were empty; `ret_shaped` is set
 * when their GPUs could. */
static bool
why_ever_held(const struct bh_engine *engine, const struct bh_need *need, uint32_t row, bool *ret_shaped)
{
    uint32_t shaped = 0, members = 0;

    for (uint32_t node = 0; members < need->gang && bh_slot_next(engine, TABLE_NODE, &node);) {
        uint32_t capacity = why_capacity_when_empty(engine, need, node, row) / need->count;

        shaped += capacity;
        members += why_least(capacity, bh_host_capacity_ever(engine, need->job, node));
    }
    *ret_shaped = *ret_shaped || shaped >= need->gang;
    return members >= need->gang;
}

/* The most partitions of the SKU, by any of its rows, that one node could hold if it were empty. */
static uint32_t
why_most_partitions(const struct bh_engine *engine, const struct bh_need *need)
{
    uint32_t most = 0;

    for (uint32_t row = 0; row < sku_at(engine, need->sku)->model_count; row++)
        for (uint32_t node = 0; bh_slot_next(engine, TABLE_NODE, &node);) {
            uint32_t capacity = why_capacity_when_empty(engine, need, node, row);

            most = capacity > most ? capacity : most;
        }
    return most;
}

static bool
why_is_of_models(const struct gpu *gpu, const struct sku *sku)
{
    for (uint32_t row = 0; row < sku->model_count; row++)
        if (gpu->model == sku->models[row])
            return true;
    return false;
}

/* A GPU of the SKU's models that is not managed, or none. */
static bh_gpu_id
why_find_unmanaged(const struct bh_engine *engine, const struct sku *sku)
{
    for (uint32_t gpu = 0; bh_slot_next(engine, TABLE_GPU, &gpu);)
        if (!gpu_at(engine, gpu)->managed && why_is_of_models(gpu_at(engine, gpu), sku))
            return (bh_gpu_id){ (uint32_t)gpu_at(engine, gpu)->id };
    return (bh_gpu_id){ 0 };
}

static struct bh_reason
why_never_shape(const struct bh_engine *engine, const struct bh_need *need)
{
    struct bh_reason reason = { .code = BH_REASON_NEVER_SHAPE,
                                .sku = why_sku_of(engine, need->sku),
                                .wanted = need->count * need->gang,
                                .limit = why_most_partitions(engine, need) };

    if (reason.limit == 0)
        reason.gpu = why_find_unmanaged(engine, sku_at(engine, need->sku));
    return reason;
}

/* Whether the SKU's grade is that of nodes which no other tenant uses, and its tenant has none. */
static bool
why_is_not_dedicated(const struct bh_engine *engine, const struct bh_need *need)
{
    return sku_at(engine, need->sku)->grade == BH_GRADE_A && !bh_separation_dedicated(engine, need->tenant);
}

/* Whether the nodes' GPUs could hold all members by the row if they were empty. */
static bool
why_shaped_by(const struct bh_engine *engine, const struct bh_need *need, uint32_t row)
{
    uint64_t members = 0;

    for (uint32_t node = 0; members < need->gang && bh_slot_next(engine, TABLE_NODE, &node);)
        members += why_capacity_when_empty(engine, need, node, row) / need->count;
    return members >= need->gang;
}

bool
bh_engine_shapes_ever(const struct bh_engine *engine, const struct bh_ev_submit *submit,
                      struct bh_reason *ret_why)
{
    struct bh_need need = { .tenant = tenant_find(engine, submit->tenant.v),
                            .sku = sku_find(engine, submit->sku.v),
                            .count = submit->count,
                            .gang = submit->gang ? submit->gang : 1 };

    if (!need.tenant || !need.sku || need.count == 0)
        return true;
    for (uint32_t row = 0; row < sku_at(engine, need.sku)->model_count; row++)
        if (why_shaped_by(engine, &need, row))
            return true;
    *ret_why = why_never_shape(engine, &need);
    return ret_why->limit == 0; /* no GPU here holds even one: one may come */
}

static bool
why_ever_allowed(const struct bh_engine *engine, const struct bh_need *need, uint32_t row,
                 struct bh_reason *ret_why)
{
    struct bh_wanted wanted = bh_placement_wanted(engine, need, row);
    struct bh_reason why;

    if (bh_quota_ever(engine, &wanted, &why))
        return true;
    *ret_why = why;
    return false;
}

/* Whether its boundary keeps it from what a managed GPU could hold by the row. */
static bool
why_is_forbidden(const struct bh_engine *engine, const struct bh_need *need, uint32_t row)
{
    const struct sku *sku = sku_at(engine, need->sku);

    if (bh_gpu_form_allows(engine, need->tenant, sku, row))
        return false;
    for (uint32_t gpu = 0; bh_slot_next(engine, TABLE_GPU, &gpu);)
        if (gpu_at(engine, gpu)->managed && gpu_at(engine, gpu)->model == sku->models[row]
            && bh_capacity_accepts(gpu_at(engine, gpu), sku->profiles[row]))
            return true;
    return false;
}

static struct why_field
why_survey(const struct bh_engine *engine, const struct bh_need *need)
{
    const struct sku *sku = sku_at(engine, need->sku);
    struct why_field field = { .wanted_parts = bh_quota_least(engine, need->sku, need->count * need->gang) };

    for (uint32_t row = 0; row < sku->model_count; row++) {
        bool possible = why_ever_held(engine, need, row, &field.shaped);

        field.weaker = field.weaker || why_is_forbidden(engine, need, row);
        if (possible && why_ever_allowed(engine, need, row, &field.forbids))
            field.ever = true;
        for (uint32_t gpu = 0; bh_slot_next(engine, TABLE_GPU, &gpu);)
            if (gpu_at(engine, gpu)->managed
                && bh_placement_serves(engine, gpu_at(engine, gpu), need->tenant, sku, row))
                why_survey_gpu(engine, gpu, sku->profiles[row], &field);
    }
    return field;
}

/* The limits forbid every way to keep the SKU: the reason for the first. */
static bool
why_over_quota(const struct bh_search *search, const struct bh_need *need, struct bh_reason *ret_reason,
               uint32_t *ret_whose)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    bool over = false;

    for (uint32_t row = sku->model_count; row-- > 0;) {
        struct bh_wanted wanted = bh_placement_wanted(search->engine, need, row);

        if (bh_quota_allows(search, &wanted, ret_reason, ret_whose))
            return false;
        over = true;
    }
    return over;
}

static void
why_name_gpu_holder(const struct bh_engine *engine, const struct bh_need *need, struct bh_reason *reason)
{
    const struct sku *sku = sku_at(engine, need->sku);

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_PARTITION, &slot);) {
        const struct partition *partition = partition_at(engine, slot);

        for (uint32_t row = 0; partition->lease && row < sku->model_count; row++)
            if (bh_placement_serves(engine, gpu_at(engine, partition->gpu), need->tenant, sku, row))
                bh_why_name_holder(engine, partition->lease, reason);
    }
}

/* Whether the lease holds something on the place's GPU, or keeps the tenant off its node. */
static bool
why_holds_at(const struct bh_engine *engine, uint32_t slot, const struct placement *placement,
             uint32_t tenant)
{
    const struct lease *lease = lease_at(engine, slot);

    if (engine->core.dedicated && lease->tenant != tenant && lease->state != LEASE_DONE
        && lease->node == gpu_at(engine, gpu_find(engine, placement->gpu))->node
        && bh_separation_between(engine, tenant, lease->tenant).dedicated)
        return true;
    for (uint32_t i = 0; i < lease->count; i++)
        if (lease->parts[i] && lease->placements[i].gpu == placement->gpu)
            return true;
    return false;
}

/* When the capacity that is reserved for the job comes free, and which job leaves it last.  Jobs that were
 * ordered to end count to the end of their grace.  It is no promise where another job that must leave has no
 * limit that ends it by then. */
static void
why_report_reserved(const struct bh_engine *engine, uint32_t job, struct bh_reason *reason)
{
    const struct claim *claim = NULL;
    uint64_t last_ns = 0;

    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++)
        if (engine->core.claims[i].job == job && engine->core.claims[i].at_ns)
            claim = &engine->core.claims[i];
    if (!claim)
        return;
    reason->frees_at_ns = claim->at_ns;
    reason->leaving = false;
    if (reason->code != BH_REASON_BOUNDARY) /* whose neighbor it must not be is known */
        reason->job.v = 0;
    for (uint32_t i = 0; i < claim->count; i++)
        for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
            bool leaving = bh_why_is_stopping(engine, slot);
            uint64_t by_ns = bh_why_leaves_by_ns(engine, slot);
            uint64_t ends_ns = leaving ? by_ns : bh_lease_ends_ns(engine, slot);

            if (!why_holds_at(engine, slot, &claim->placements[i], job_at(engine, job)->tenant)
                || (!leaving && ends_ns > claim->at_ns))
                continue;
            if (!leaving && by_ns > claim->at_ns)
                reason->assumed = true;
            if (ends_ns <= last_ns)
                continue;
            last_ns = ends_ns;
            reason->job = bh_why_job_of_lease(engine, slot);
            reason->leaving = leaving;
        }
    if (last_ns > claim->at_ns)
        reason->frees_at_ns = last_ns;
    /* the job that it waited for holds on for longer than was assumed */
    if (last_ns == 0)
        reason->assumed = true;
}

/* By when it would have to end to use what is reserved meanwhile; 0 where that would not do. */
static uint64_t
why_backfilled_by(const struct bh_search *base, const struct bh_need *need)
{
    const struct bh_engine *engine = base->engine;
    struct bh_search search = *base;
    uint64_t by_ns = 0;
    struct bh_plan plan;

    search.past = bh_reserve_set(engine);
    if (!engine->core.settings.backfill || !bh_placement_find(&search, need, &plan, NULL))
        return 0;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(base, i);

        if (claim && claim->at_ns && (by_ns == 0 || claim->at_ns < by_ns))
            by_ns = claim->at_ns;
    }
    return by_ns;
}

/* How near the claim is to where the job would go: on the GPU, on the node, or elsewhere. */
static uint32_t
why_nearness(const struct bh_engine *engine, const struct claim *claim, uint32_t gpu)
{
    uint32_t near = 1;

    for (uint32_t k = 0; k < claim->count; k++) {
        uint32_t at = gpu_find(engine, claim->placements[k].gpu);

        if (at == gpu)
            return 3;
        if (gpu_at(engine, at)->node == gpu_at(engine, gpu)->node)
            near = 2;
    }
    return near;
}

/* The job for which the room is kept that this one would otherwise get.  False: it would get
 * none without that either, and `reason` says why. */
static bool
why_is_behind(const struct bh_search *base, const struct bh_need *need, struct bh_reason *reason)
{
    const struct bh_engine *engine = base->engine;
    struct bh_search search = *base;
    uint32_t nearest = 0;
    struct bh_plan plan;

    search.past_claims = true;
    search.closed = 0;
    if (engine->core.claim_count == 0 || !bh_placement_find(&search, need, &plan, reason))
        return false;
    *reason = (struct bh_reason){ .code = BH_REASON_BEHIND, .frees_at_ns = why_backfilled_by(base, need) };
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(base, i);
        uint32_t near = claim ? why_nearness(engine, claim, plan.assignments[0].gpu) : 0;

        if (near <= nearest)
            continue;
        nearest = near;
        reason->job.v = job_at(engine, claim->job)->id;
    }
    return true;
}

/* Name the job on the GPU that leaves first. */
static void
why_name_holders_on(const struct bh_engine *engine, uint32_t gpu, struct bh_reason *reason)
{
    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->lease)
            bh_why_name_holder(engine, partition_at(engine, at)->lease, reason);
}

/* Name the job on the node that leaves first. */
static void
why_name_host_holder(const struct bh_engine *engine, uint32_t node, struct bh_reason *reason)
{
    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        why_name_holders_on(engine, gpu, reason);
}

/* GPUs are free for it where cores or memory are not. */
static bool
why_is_unhosted(const struct bh_search *base, const struct bh_need *need, struct bh_reason *reason)
{
    const struct bh_engine *engine = base->engine;
    struct bh_search search = *base;
    const struct job *job = job_at(engine, need->job);
    const struct node *node;
    struct bh_plan plan;

    search.past_hosts = true;
    if (!bh_placement_find(&search, need, &plan, NULL))
        return false;
    node = node_at(engine, plan.node);
    *reason = (struct bh_reason){ .gpu = { (uint32_t)gpu_at(engine, plan.assignments[0].gpu)->id } };
    if (bh_host_lacks_cores(base, plan.node)) {
        reason->code = BH_REASON_CORES;
        reason->wanted = job->cpu_milli;
        reason->used = node->cpu_used;
        reason->limit = node->cpu_milli;
    } else {
        reason->code = BH_REASON_MEMORY;
        reason->wanted = job->memory_mib;
        reason->used = node->memory_used;
        reason->limit = node->memory_mib;
    }
    why_name_host_holder(engine, plan.node, reason);
    why_report_reserved(engine, need->job, reason);
    return true;
}

/* No GPU that could serve it gets work: why the one that comes back first does not. */
static void
why_report_unschedulable(const struct why_field *field, struct bh_reason *reason)
{
    *reason = (struct bh_reason){ .code = field->excluded_node };
    BH_ASSERT(field->excluded_node != BH_REASON_NONE);
    if (field->excluded_node != BH_REASON_NODE_DOWN)
        reason->gpu = field->away_gpu;
}

/* When the job leaves that must not have this one beside it. */
static void
why_report_when_apart(const struct bh_engine *engine, uint32_t job, struct bh_reason *reason)
{
    uint32_t beside = job_find(engine, reason->job.v);

    for (uint32_t at = 0; (at = bh_gang_next(engine, beside, at)) != 0;) {
        uint64_t by_ns = bh_why_leaves_by_ns(engine, at);

        if (by_ns == UINT64_MAX || by_ns <= reason->frees_at_ns)
            continue;
        reason->frees_at_ns = by_ns;
        reason->leaving = bh_why_is_stopping(engine, at);
    }
    why_report_reserved(engine, job, reason);
}

static void
why_no_capacity(const struct bh_search *search, struct bh_need *need, const struct why_field *field,
                struct bh_reason *reason)
{
    const struct bh_engine *engine = search->engine;
    struct bh_plan plan;

    if (bh_placement_find(search, need, &plan, reason)) {
        uint32_t head = class_at(engine, job_at(engine, need->job)->class)->head;

        *reason = (struct bh_reason){ .code = BH_REASON_BEHIND, .job = { job_at(engine, head)->id } };
        return;
    }
    if (bh_avoid_why(search, need, reason))
        return;
    need->avoid_gpu = need->avoid_node = 0; /* there is no room where it was tried, either */
    (void)!bh_placement_find(search, need, &plan, reason);
    if (why_is_behind(search, need, reason))
        return;
    if (reason->code == BH_REASON_BOUNDARY || reason->code == BH_REASON_REPARTITION) {
        why_report_when_apart(engine, need->job, reason);
        return;
    }
    if (why_is_unhosted(search, need, reason))
        return;
    if (bh_why_share(search, need, reason)) {
        why_name_holders_on(engine, gpu_find(engine, reason->gpu.v), reason);
        return;
    }
    *reason = (struct bh_reason){ .code = BH_REASON_NO_CAPACITY,
                                  .sku = why_sku_of(engine, need->sku),
                                  .wanted = need->count * need->gang,
                                  .used = field->used };
    if (field->free_parts >= field->wanted_parts) {
        reason->code = BH_REASON_NO_SHAPE;
        reason->used = 0;
        reason->free_partitions = field->free_parts;
    }
    why_name_gpu_holder(engine, need, reason);
    why_report_reserved(engine, need->job, reason);
    if (field->excluded_node == BH_REASON_NODE_DOWN)
        return;
    if (field->used == 0 && field->excluded_node != BH_REASON_NONE) {
        why_report_unschedulable(field, reason);
    } else {
        reason->also = field->excluded_node;
        reason->also_gpu = field->away_gpu;
    }
}

/* Whether it waits for room that others hold: of its own tenant's limit (`whose`) no other
 * has any. */
static bool
why_waits_for_others(const struct bh_reason *reason, uint32_t tenant, uint32_t whose)
{
    static const bool by_others[BH_REASONS] = {
        [BH_REASON_QUOTA_GPU] = true,   [BH_REASON_QUOTA_SKU] = true,  [BH_REASON_QUOTA_MODEL] = true,
        [BH_REASON_NO_CAPACITY] = true, [BH_REASON_NO_SHAPE] = true,   [BH_REASON_CORES] = true,
        [BH_REASON_MEMORY] = true,      [BH_REASON_SHARE_MODE] = true, [BH_REASON_SHARE_MEMORY] = true,
        [BH_REASON_BEHIND] = true,
    };

    return by_others[reason->code] && whose != tenant;
}

static void
why_waiting(const struct bh_engine *engine, uint32_t job_slot, struct bh_reason *reason)
{
    const struct job *job = job_at(engine, job_slot);
    struct bh_need need = bh_placement_need(engine, job->class);
    struct bh_queue_entry entry;
    struct bh_search search;
    struct why_field field;
    uint32_t whose = 0;

    bh_queue_entry_of_class(engine, job->class, &entry);
    search = bh_reserve_search(engine, &entry, job_slot);
    need.job = job_slot;
    if (bh_usage_exhausted(engine, job->tenant, reason))
        return;
    *reason = (struct bh_reason){ 0 };
    field = why_survey(engine, &need);
    if (!field.ever && field.forbids.code != BH_REASON_NONE) {
        *reason = field.forbids;
    } else if (!field.ever && bh_why_unshared(engine, need.sku)) {
        *reason = (struct bh_reason){ .code = BH_REASON_NOT_SHARED, .sku = why_sku_of(engine, job->sku) };
    } else if (!field.ever && why_is_not_dedicated(engine, &need)) {
        *reason = (struct bh_reason){ .code = BH_REASON_NOT_DEDICATED, .sku = why_sku_of(engine, job->sku) };
    } else if (!field.ever && field.weaker && !field.shaped) {
        *reason = (struct bh_reason){ .code = BH_REASON_NEVER_FORM, .sku = why_sku_of(engine, job->sku) };
    } else if (!field.ever && field.shaped) {
        *reason = bh_host_why_never(engine, job_slot);
    } else if (!field.ever) {
        *reason = why_never_shape(engine, &need);
    } else if (field.up == 0) {
        why_report_unschedulable(&field, reason);
    } else if (why_over_quota(&search, &need, reason, &whose)) {
        bh_why_name_quota_holder(engine,
                                 &(struct bh_why_limit){ .code = reason->code,
                                                         .whose = whose,
                                                         .sku = sku_find(engine, reason->sku.v),
                                                         .model = reason->model,
                                                         .principal = job->principal },
                                 reason);
    } else {
        why_no_capacity(&search, &need, &field, reason);
    }
    if (why_waits_for_others(reason, job->tenant, whose))
        bh_why_guarantee(&search, &need, &reason->guarantee);
}

/* One of the victims of the job. */
static bool
why_is_preempting(const struct bh_engine *engine, uint32_t job_slot, struct bh_reason *reason)
{
    bool claimed = false;

    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++)
        claimed = claimed || (engine->core.claims[i].job == job_slot && !engine->core.claims[i].at_ns);
    if (!claimed)
        return false;
    reason->code = BH_REASON_PREEMPTING;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        if (lease_at(engine, slot)->for_job != job_at(engine, job_slot)->id)
            continue;
        why_report_kill(engine, slot, reason);
        if (!reason->job.v)
            reason->job = bh_why_job_of_lease(engine, slot);
    }
    return true;
}

/* Where a moved job goes, and the job that it is for. */
static void
why_moving(const struct bh_engine *engine, uint32_t job_slot, struct bh_reason *reason)
{
    const struct job *job = job_at(engine, job_slot);
    uint32_t first = bh_gang_next(engine, job_slot, 0);

    reason->code = BH_REASON_MOVING;
    reason->job.v = job->lease ? lease_at(engine, first)->for_job : job->preempted_for;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++)
        if (engine->core.claims[i].job == job_slot)
            reason->gpu.v = engine->core.claims[i].placements[0].gpu;
}

void
bh_engine_why(const struct bh_engine *engine, bh_job_id id, uint64_t now_ns, struct bh_reason *ret_reason)
{
    uint32_t slot = job_find(engine, id.v);
    const struct job *job = job_at(engine, slot);
    struct bh_reason reason = { .code = BH_REASON_NONE };

    if (!slot)
        reason = (struct bh_reason){ .code = BH_REASON_UNKNOWN_JOB, .job = id };
    else if (bh_move_underway(engine, slot))
        why_moving(engine, slot, &reason);
    else if (job->lease)
        why_leased(engine, slot, &reason);
    else if (job->hold)
        reason.code = BH_REASON_HELD;
    else if (job->class && !why_is_preempting(engine, slot, &reason))
        why_waiting(engine, slot, &reason);
    if (slot && !job->lease && job->cause == BH_END_PREEMPTED)
        reason.preempted_for.v = job->preempted_for;
    if (slot && (reason.code == BH_REASON_RUNNING || (job->class && !job->hold)))
        bh_gpu_form_explain(engine, slot, &reason.form);
    if (slot && job->moved) {
        reason.moved_ns = bh_move_last_ns(job);
        reason.moved_for.v = job->preempted_for;
    }
    /* a limit that has passed says nothing about when */
    if (reason.frees_at_ns && reason.frees_at_ns < now_ns)
        reason.frees_at_ns = now_ns;
    *ret_reason = reason;
}
