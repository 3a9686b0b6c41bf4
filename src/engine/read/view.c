#include "engine/read/view.h"

#include <string.h>

#include "base/attr.h"
#include "engine/account/separation.h"
#include "engine/account/tenant.h"
#include "engine/account/usage.h"
#include "engine/gpu/host.h"
#include "engine/gpu/ledger.h"
#include "engine/gpu/pool.h"
#include "engine/preempt/move.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"

const char *const bh_partition_state_names[BH_PARTITION_STATES] = {
    [BH_PARTITION_CARVING] = "carving",         [BH_PARTITION_IDLE] = "idle",
    [BH_PARTITION_LEASED] = "leased",           [BH_PARTITION_CLEARING] = "clearing",
    [BH_PARTITION_QUARANTINED] = "quarantined",
};

/* One shape for all: show_X copies out the X in a slot and says whether there is one.  The slot is
 * the one that was looked for, or the next one: 0 is none. */
static uint32_t
view_next_slot(const struct bh_engine *engine, enum table_kind kind, uint32_t *cursor)
{
    return bh_slot_next(engine, kind, cursor) ? *cursor : 0;
}

/* ---- jobs ---- */

/* The partitions of a lease; returns how many. */
static uint32_t
view_show_partitions(const struct bh_engine *engine, const struct lease *lease,
                     struct bh_partition ret_partitions[BH_JOB_COUNT_MAX])
{
    if (lease->state == LEASE_DONE)
        return 0;
    for (uint32_t i = 0; i < lease->count; i++)
        ret_partitions[i] = (struct bh_partition){ .partition = { partition_at(engine, lease->parts[i])->id },
                                                   .gpu = { lease->placements[i].gpu },
                                                   .profile = lease->placements[i].profile,
                                                   .start = lease->placements[i].start };
    return lease->count;
}

static void
view_show_lease(const struct bh_engine *engine, const struct lease *lease, struct bh_job_view *ret_view)
{
    ret_view->lease.v = lease->id;
    ret_view->member = lease->member;
    ret_view->node.v = (uint32_t)node_at(engine, lease->node)->id;
    ret_view->grade = (enum bh_grade)lease->grade;
    ret_view->partition_count = view_show_partitions(engine, lease, ret_view->partitions);
}

/* From when on room is kept for the job, or 0. */
static uint64_t
view_reserved_ns(const struct bh_engine *engine, uint32_t job)
{
    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++)
        if (engine->core.claims[i].job == job && engine->core.claims[i].at_ns)
            return engine->core.claims[i].at_ns;
    return 0;
}

static bool
view_show_job(const struct bh_engine *engine, uint32_t slot, struct bh_job_view *ret_view)
{
    const struct job *job = job_at(engine, slot);

    if (!slot)
        return false;
    *ret_view = (struct bh_job_view){
        .job = { job->id },
        .tenant = { (uint32_t)tenant_at(engine, job->tenant)->id },
        .principal = { job->principal },
        .sku = { (uint32_t)sku_at(engine, job->sku)->id },
        .count = job->count,
        .gang = job->gang,
        .cpu_milli = job->cpu_milli,
        .memory_mib = job->memory_mib,
        .kind = (enum bh_job_kind)job->kind,
        .priority = (enum bh_priority)job->priority,
        .contract = (enum bh_contract)job->contract,
        .state = (enum bh_job_state)job->state,
        .restarts = job->restarts,
        .suspensions = job->suspensions,
        .submitted_ns = job->submitted_ns,
        .started_ns = job->started_ns,
        .time_limit_ns = job->time_limit_ns,
        .deadline_ns = job->deadline_ns,
        .reserved_ns = view_reserved_ns(engine, slot),
        .cause = (enum bh_end_cause)job->cause,
        .exit_status = job->exit_status,
        .ended_ns = job->ended_ns,
    };
    memcpy(ret_view->spec, job->spec, sizeof(ret_view->spec));
    if (job->lease)
        view_show_lease(engine, lease_at(engine, job->lease), ret_view);
    return true;
}

bool
bh_view_job(const struct bh_engine *engine, bh_job_id job, struct bh_job_view *ret_view)
{
    return view_show_job(engine, job_find(engine, job.v), ret_view);
}

bool
bh_view_lease(const struct bh_engine *engine, bh_lease_id lease, struct bh_job_view *ret_view)
{
    uint32_t slot = lease_find(engine, lease.v);

    if (!slot)
        return false;
    (void)view_show_job(engine, lease_at(engine, slot)->job, ret_view);
    view_show_lease(engine, lease_at(engine, slot), ret_view);
    return true;
}

bool
bh_view_member(const struct bh_engine *engine, bh_job_id job, uint32_t member,
               struct bh_member_view *ret_view)
{
    uint32_t slot = job_at(engine, job_find(engine, job.v))->lease;
    const struct lease *lease;

    while (slot && lease_at(engine, slot)->member != member)
        slot = lease_at(engine, slot)->next_member;
    if (!slot)
        return false;
    lease = lease_at(engine, slot);
    *ret_view = (struct bh_member_view){
        .lease = { lease->id },
        .member = member,
        .node = { (uint32_t)node_at(engine, lease->node)->id },
        .done = lease->state == LEASE_DONE,
        .state = bh_gang_shows((enum lease_state)lease->state),
    };
    ret_view->partition_count = view_show_partitions(engine, lease, ret_view->partitions);
    return true;
}

bool
bh_view_next_job(const struct bh_engine *engine, uint32_t *cursor, struct bh_job_view *ret_view)
{
    return view_show_job(engine, view_next_slot(engine, TABLE_JOB, cursor), ret_view);
}

_Static_assert((int)BH_RESERVATIONS_MAX == (int)CLAIMS_MAX, "one for each claim");

bool
bh_view_next_reservation(const struct bh_engine *engine, uint32_t *cursor,
                         struct bh_reservation_view *ret_view)
{
    const struct claim *claim;

    while (*cursor < CLAIMS_MAX && !engine->core.claims[*cursor].job)
        (*cursor)++;
    if (engine->core.claim_count == 0 || *cursor == CLAIMS_MAX)
        return false;
    claim = &engine->core.claims[(*cursor)++];
    ret_view->job.v = job_at(engine, claim->job)->id;
    ret_view->at_ns = claim->at_ns;
    ret_view->partition_count = claim->count;
    for (uint32_t i = 0; i < claim->count; i++)
        ret_view->partitions[i] = (struct bh_partition){ .gpu = { claim->placements[i].gpu },
                                                         .profile = claim->placements[i].profile,
                                                         .start = claim->placements[i].start };
    return true;
}

const char *const bh_unusable_names[BH_UNUSABLES] = {
    [BH_UNUSABLE_GEOMETRY] = "geometry", [BH_UNUSABLE_CARVING] = "carving",
    [BH_UNUSABLE_FAULT] = "fault",       [BH_UNUSABLE_CORDONED] = "cordoned",
    [BH_UNUSABLE_AWAY] = "away",         [BH_UNUSABLE_RESERVE] = "driver_reserve",
    [BH_UNUSABLE_UNHEARD] = "unheard",
};

/* ---- GPUs and partitions ---- */

static bool
view_show_gpu(const struct bh_engine *engine, uint32_t slot, struct bh_gpu_view *ret_view)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_split split;

    if (!slot)
        return false;
    bh_ledger_split(engine, slot, &split);
    *ret_view = (struct bh_gpu_view){
        .gpu = { (uint32_t)gpu->id },
        .node = { (uint32_t)node_at(engine, gpu->node)->id },
        .model = gpu->model,
        .managed = gpu->managed,
        .cordoned = gpu->cordoned,
        .fenced = gpu->fenced != FENCE_NONE,
        .keeps = gpu->fenced == FENCE_KEEPS,
        .mig = gpu->mig,
        .link = gpu->link,
        .numa = gpu->numa,
        .layout = (enum bh_pool_layout)gpu->layout,
        .mig_capable = gpu->mig_capable,
        .lone_carve = gpu->lone_carve,
        .shared = gpu->shared,
        .share_limit = gpu->share_limit,
        .held = (enum bh_held)gpu->held,
        .node_held = (enum bh_held)node_at(engine, gpu->node)->held,
        .health = (enum bh_gpu_health)gpu->health.state,
        .xid = gpu->health.xid,
        .sign = gpu->health.sign,
        .since_ns = gpu->health.since_ns,
        .until_ns = gpu->health.until_ns,
        .reset_due = gpu->health.reset_due,
        .resets = (gpu->health.resets_ns[0] != 0) + (gpu->health.resets_ns[1] != 0),
        .used = bh_parts_add(split.leased, split.dedicated),
        .dedicated = split.dedicated,
        .idle = split.idle,
        .unusable = split.unusable,
    };
    memcpy(ret_view->causes, split.causes, sizeof split.causes);
    return true;
}

uint64_t
bh_view_health_moves(const struct bh_engine *engine)
{
    return engine->core.health_moves;
}

bool
bh_view_host(const struct bh_engine *engine, bh_node_id id, struct bh_host_view *ret_view)
{
    uint32_t slot = node_find(engine, id.v);
    const struct node *node = node_at(engine, slot);

    if (!slot)
        return false;
    *ret_view = (struct bh_host_view){ .up = node->up,
                                       .cpu_milli = node->cpu_milli,
                                       .memory_mib = node->memory_mib,
                                       .cpu_used = node->cpu_used,
                                       .memory_used = node->memory_used,
                                       .held = (enum bh_held)node->held,
                                       .reboots = node->reboots,
                                       .unchecked = node->unchecked,
                                       .failed = { { node->failed_job }, { node->failed_before } } };
    return true;
}

uint32_t
bh_view_unchecked(const struct bh_engine *engine, bh_node_id *ret_nodes, uint32_t most)
{
    uint32_t count = 0;

    if (engine->core.unchecked == 0)
        return 0;
    for (uint32_t slot = 0; count < most && bh_slot_next(engine, TABLE_NODE, &slot);)
        if (node_at(engine, slot)->unchecked && node_at(engine, slot)->up)
            ret_nodes[count++].v = (uint32_t)node_at(engine, slot)->id;
    return count;
}

bool
bh_view_gpu(const struct bh_engine *engine, bh_gpu_id gpu, struct bh_gpu_view *ret_view)
{
    return view_show_gpu(engine, gpu_find(engine, gpu.v), ret_view);
}

struct bh_ev_gpu
bh_view_gpu_report(const struct bh_gpu_view *view)
{
    return (struct bh_ev_gpu){ .gpu = view->gpu,
                               .node = view->node,
                               .model = view->model,
                               .managed = view->managed,
                               .cordoned = view->cordoned,
                               .fenced = view->fenced,
                               .keeps = view->keeps,
                               .link = view->link,
                               .numa = view->numa,
                               .layout = view->layout,
                               .mig_capable = view->mig_capable,
                               .lone_carve = view->lone_carve,
                               .share_limit = view->share_limit };
}

const char *const bh_layout_state_names[BH_LAYOUT_STATES] = {
    [BH_LAYOUT_NONE] = "none",       [BH_LAYOUT_APPLYING] = "applying", [BH_LAYOUT_READY] = "stands",
    [BH_LAYOUT_UNDOING] = "undoing", [BH_LAYOUT_UNDONE] = "undone",     [BH_LAYOUT_FAILED] = "failed",
};

static struct bh_layout_list
view_show_layout(const struct gpu_layout *gpu_layout)
{
    struct bh_layout_list list = { .mode = (enum bh_layout_mode)gpu_layout->mode,
                                   .count = gpu_layout->count };

    for (uint32_t i = 0; i < gpu_layout->count; i++)
        list.partitions[i] =
            (struct bh_ev_layout_partition){ gpu_layout->profiles[i], gpu_layout->starts[i] };
    return list;
}

bool
bh_view_layout(const struct bh_engine *engine, bh_gpu_id id, struct bh_layout_view *ret_view)
{
    uint32_t slot = gpu_find(engine, id.v);
    const struct gpu *gpu = gpu_at(engine, slot);

    if (slot)
        *ret_view = (struct bh_layout_view){ .state = (enum bh_layout_state)gpu->gpu_layout,
                                             .apply = gpu->apply,
                                             .rc = gpu->layout_rc,
                                             .wanted = view_show_layout(&gpu->wanted),
                                             .before = view_show_layout(&gpu->before) };
    return slot != 0;
}

uint32_t
bh_view_applied(const struct bh_engine *engine)
{
    return engine->core.applied;
}

bool
bh_view_next_gpu(const struct bh_engine *engine, uint32_t *cursor, struct bh_gpu_view *ret_view)
{
    return view_show_gpu(engine, view_next_slot(engine, TABLE_GPU, cursor), ret_view);
}

bool
bh_view_next_partition(const struct bh_engine *engine, uint32_t *cursor, struct bh_partition_view *ret_view)
{
    const struct partition *partition;
    const struct lease *lease;

    if (!bh_slot_next(engine, TABLE_PARTITION, cursor))
        return false;
    partition = partition_at(engine, *cursor);
    lease = lease_at(engine, partition->lease);
    *ret_view = (struct bh_partition_view){
        .partition = { .partition = { partition->id },
                       .gpu = { (uint32_t)gpu_at(engine, partition->gpu)->id },
                       .profile = partition->profile,
                       .start = partition->start,
                       .carve = partition->state == BH_PARTITION_CARVING },
        .state = partition->state == BH_PARTITION_CLEARING && partition->unclean
                     ? BH_PARTITION_QUARANTINED
                     : (enum bh_partition_state)partition->state,
        .lease = { lease->id },
        .job = { job_at(engine, lease->job)->id },
        .tenant = { partition->tenant },
    };
    return true;
}

/* ---- tenants ---- */

static bool
view_show_tenant(const struct bh_engine *engine, uint32_t slot, uint64_t now_ns,
                 struct bh_tenant_view *ret_view)
{
    const struct tenant *tenant = tenant_at(engine, slot);
    struct bh_ev_tenant *settings = &ret_view->settings;

    if (!slot)
        return false;
    *ret_view = (struct bh_tenant_view){ .used = tenant->used,
                                         .expected = tenant->expected,
                                         .running = tenant->running,
                                         .pending = tenant->pending };
    *settings = (struct bh_ev_tenant){
        .tenant = { (uint32_t)tenant->id },
        .parent = { (uint32_t)tenant_at(engine, tenant->parent)->id },
        .kind = (enum bh_tenant_kind)tenant->kind,
        .boundary = (enum bh_boundary)tenant->boundary_set,
        .dedicated_nodes = tenant->dedicated,
        .limit = tenant->limit,
        .guarantee = tenant->guarantee,
        .min_runtime_ns = tenant->min_runtime_ns,
        .withhold = tenant->withhold,
        .user_limit = tenant->user_limit,
        .weight = tenant->weight,
        .budget = { (enum bh_period)tenant->period, tenant->budget_gpu_s, tenant->budget_money },
        .quota_count = tenant->quota_count,
    };
    for (uint32_t i = 0; i < tenant->quota_count; i++) {
        const struct quota *quota = &tenant->quotas[i];

        settings->quotas[i] = (struct bh_tenant_quota){ (enum bh_quota_scope)quota->scope, quota->of,
                                                        quota->limit, quota->guarantee, quota->withhold };
        ret_view->quota_used[i] = quota->used;
    }
    bh_usage_spent(engine, slot, now_ns, &ret_view->spent_gpu, &ret_view->spent_money);
    ret_view->fair = bh_usage_of(engine, slot);
    bh_ledger_usage(engine, tenant->metered, now_ns, &ret_view->compute_ns, &ret_view->memory_ns);
    bh_ledger_dedicated(engine, tenant->metered, now_ns, &ret_view->dedicated_compute_ns,
                        &ret_view->dedicated_memory_ns);
    return true;
}

bool
bh_view_tenant(const struct bh_engine *engine, bh_tenant_id tenant, uint64_t now_ns,
               struct bh_tenant_view *ret_view)
{
    return view_show_tenant(engine, tenant_find(engine, tenant.v), now_ns, ret_view);
}

bool
bh_view_next_tenant(const struct bh_engine *engine, uint32_t *cursor, uint64_t now_ns,
                    struct bh_tenant_view *ret_view)
{
    return view_show_tenant(engine, view_next_slot(engine, TABLE_TENANT, cursor), now_ns, ret_view);
}

static bool
view_show_metered(const struct bh_engine *engine, uint32_t row, uint64_t now_ns,
                  struct bh_metered_view *ret_view)
{
    if (!row)
        return false;
    ret_view->tenant.v = (uint32_t)metered_at(engine, row)->id;
    bh_ledger_usage(engine, row, now_ns, &ret_view->compute_ns, &ret_view->memory_ns);
    bh_ledger_dedicated(engine, row, now_ns, &ret_view->dedicated_compute_ns, &ret_view->dedicated_memory_ns);
    return true;
}

bool
bh_view_metered(const struct bh_engine *engine, bh_tenant_id tenant, uint64_t now_ns,
                struct bh_metered_view *ret_view)
{
    return view_show_metered(engine, metered_find(engine, tenant.v), now_ns, ret_view);
}

bool
bh_view_next_metered(const struct bh_engine *engine, uint32_t *cursor, uint64_t now_ns,
                     struct bh_metered_view *ret_view)
{
    return view_show_metered(engine, view_next_slot(engine, TABLE_METERED, cursor), now_ns, ret_view);
}

bool
bh_view_within(const struct bh_engine *engine, bh_tenant_id ancestor, bh_tenant_id tenant)
{
    uint32_t above = tenant_find(engine, ancestor.v), slot = tenant_find(engine, tenant.v);

    return above && slot && bh_tenant_within(engine, above, slot);
}

enum bh_boundary
bh_view_boundary(const struct bh_engine *engine, bh_tenant_id a, bh_tenant_id b)
{
    uint32_t one = tenant_find(engine, a.v), other = tenant_find(engine, b.v);

    if (!one || !other)
        return BH_BOUNDARY_FORTRESS;
    return bh_separation_between(engine, one, other).boundary;
}

enum bh_boundary
bh_view_strongest(const struct bh_engine *engine, bh_tenant_id id)
{
    uint32_t slot = tenant_find(engine, id.v);

    return slot ? bh_separation_boundary(engine, slot) : BH_BOUNDARY_FORTRESS;
}

/* ---- the rest ---- */

bool
bh_view_sku(const struct bh_engine *engine, bh_sku_id sku, struct bh_ev_sku *ret_sku)
{
    uint32_t slot = sku_find(engine, sku.v);
    const struct sku *at = sku_at(engine, slot);

    if (!slot)
        return false;
    *ret_sku = (struct bh_ev_sku){
        .sku = sku, .grade = (enum bh_grade)at->grade, .model_count = at->model_count, .price = at->price
    };
    for (uint32_t i = 0; i < at->model_count; i++)
        ret_sku->models[i] = (struct bh_sku_model){ at->models[i], at->profiles[i] };
    return true;
}

bool
bh_view_demand(const struct bh_engine *engine, uint32_t model, struct bh_demand_view *ret_view)
{
    return model < MODELS_MAX && bh_pool_demand(engine, model, ret_view);
}

void
bh_view_settings(const struct bh_engine *engine, struct bh_ev_settings *ret_settings)
{
    *ret_settings = engine->core.settings;
}

void
bh_view_moves_left(const struct bh_engine *engine, uint64_t now_ns, struct bh_move_left_view *ret_left)
{
    struct bh_move_budget left = bh_move_left(engine, now_ns);

    *ret_left = (struct bh_move_left_view){ (uint32_t)left.moves, left.lost_gpu_ms, left.ends_ns };
}

void
bh_view_next_numbers(const struct bh_engine *engine, uint64_t *ret_lease, uint64_t *ret_partition)
{
    *ret_lease = engine->core.next_lease;
    *ret_partition = engine->core.next_partition;
}

void
bh_view_ledger(const struct bh_engine *engine, uint64_t now_ns, struct bh_ledger_view *ret_view)
{
    const struct totals *totals = &engine->core.totals;
    bh_part_ns elapsed = now_ns > engine->core.now_ns ? now_ns - engine->core.now_ns : 0;
    struct bh_ledger_view view = {
        .physical = totals->physical + totals->rate_physical * elapsed,
        .tenants_compute = totals->leased_compute + totals->rate_leased_compute * elapsed,
        .tenants_memory = totals->leased_memory + totals->rate_leased_memory * elapsed,
        .unusable_compute = totals->unusable_compute + totals->rate_unusable_compute * elapsed,
        .unusable_memory = totals->unusable_memory + totals->rate_unusable_memory * elapsed,
    };

    for (int i = 0; i < BH_UNUSABLES; i++) {
        view.causes_compute[i] = totals->causes_compute[i] + totals->rate_causes_compute[i] * elapsed;
        view.causes_memory[i] = totals->causes_memory[i] + totals->rate_causes_memory[i] * elapsed;
    }
    view.idle_compute = view.physical - view.tenants_compute - view.unusable_compute;
    view.idle_memory = view.physical - view.tenants_memory - view.unusable_memory;
    *ret_view = view;
}

bool
bh_engine_hosts_ever(const struct bh_engine *engine, const struct bh_ev_submit *submit,
                     struct bh_reason *ret_why)
{
    return bh_host_accepts_ever(engine, submit, ret_why);
}
