#include "engine/state/sound.h"

#include "engine/state/effect.h"
#include "engine/state/slots.h"

enum { STARTS_MAX = 32 };

/* Both, or neither. */
static bool
sound_same(bool a, bool b)
{
    return a == b;
}

static uint64_t
sound_equivalent(uint32_t profile)
{
    return bh_parts_equivalent(bh_profile_parts((bh_profile_id){ profile }));
}

/* ---- tenants and SKUs ---- */

static bool
sound_quotas(const struct tenant *tenant)
{
    for (uint32_t i = 0; i < tenant->quota_count; i++) {
        const struct quota *quota = &tenant->quotas[i];

        if (quota->scope >= BH_QUOTA_SCOPES || (quota->used && !tenant->running)
            || (quota->scope == BH_QUOTA_MODEL && quota->used > tenant->used))
            return false;
    }
    return true;
}

/* A tenant without tenants below has only what its own jobs have. */
static bool
sound_sums(const struct bh_engine *engine, const struct tenant *tenant)
{
    const struct tenant *parent = tenant_at(engine, tenant->parent);

    if (tenant->used_own > tenant->used || tenant->dedicated_parts_own > tenant->dedicated_parts
        || tenant->fair_own > tenant->fair || (tenant->running == 0 && (tenant->used || tenant->cost)))
        return false;
    if (tenant->children == 0
        && (tenant->used_own != tenant->used || tenant->dedicated_parts_own != tenant->dedicated_parts
            || tenant->running + tenant->pending > tenant->jobs))
        return false;
    if (!tenant->parent)
        return tenant->used <= engine->core.used && tenant->pending <= engine->core.pending;
    return parent->used - parent->used_own >= tenant->used && parent->running >= tenant->running
           && parent->pending >= tenant->pending && parent->cost >= tenant->cost
           && parent->dedicated_parts >= tenant->dedicated_parts && parent->children > 0;
}

bool
bh_sound_tenant(const struct bh_engine *engine, uint32_t slot)
{
    const struct tenant *tenant = tenant_at(engine, slot);

    return tenant->id && tenant->parent != slot
           && sound_same(tenant->parent, tenant_at(engine, tenant->parent)->id)
           && tenant->kind < BH_TENANT_KINDS && tenant->boundary < BH_BOUNDARIES
           && tenant->boundary_set < BH_BOUNDARIES && tenant->period < BH_PERIODS && tenant->dedicated <= 1
           && tenant->removed <= 1 && tenant->quota_count <= BH_TENANT_QUOTAS_MAX
           && tenant->usage_ns <= engine->core.now_ns && tenant->withhold <= tenant->guarantee
           && tenant->jobs <= engine->tables[TABLE_JOB].live && tenant->metered && sound_quotas(tenant)
           && sound_sums(engine, tenant);
}

bool
bh_sound_sku(const struct bh_engine *engine, uint32_t slot)
{
    const struct sku *sku = sku_at(engine, slot);

    if (!sku->id || sku->grade >= BH_GRADES || sku->model_count > BH_SKU_MODELS_MAX
        || sku->jobs > engine->tables[TABLE_JOB].live)
        return false;
    for (uint32_t i = 0; i < sku->model_count; i++)
        if (sku->models[i] >= BH_GPU_MODELS || sku->equivalents[i] == 0 || sku->equivalents[i] > BH_GPU_PARTS
            || sku->equivalents[i] != sound_equivalent(sku->profiles[i]))
            return false;
    return true;
}

/* ---- nodes, GPUs and partitions ---- */

bool
bh_sound_node(const struct bh_engine *engine, uint32_t slot)
{
    const struct node *node = node_at(engine, slot);
    const struct gpu *first = gpu_at(engine, node->first_gpu);

    if (!node->id || node->up > 1 || node->hot > 1 || node->unchecked > 1 || node->held >= BH_HELDS)
        return false;
    if (node->empty > node->open || node->open > node->gpu_count || node->reboots > node->gpu_count
        || node->gpu_count > engine->tables[TABLE_GPU].live)
        return false;
    if (!sound_same(node->gpu_count, node->first_gpu) || !sound_same(node->gpu_count, node->models)
        || (node->first_gpu && (first->node != slot || !(node->models >> first->model & 1))))
        return false;
    if (node->cpu_used > (uint64_t)node->leases << 32 || node->memory_used > (uint64_t)node->leases << 32)
        return false;
    return node->lasting <= node->leases && node->dedicating <= node->leases
           && node->leases <= engine->tables[TABLE_LEASE].live
           && sound_same(node->dedicating, node->dedicated_to)
           && sound_same(node->dedicated_to, tenant_at(engine, node->dedicated_to)->id);
}

/* Whether GPUs that are so taken are of one group. */
static bool
sound_alike(const struct bh_occupancy *a, const struct bh_occupancy *b)
{
    return a->units == b->units && a->slices == b->slices && a->whole == b->whole && a->media == b->media;
}

/* Its lists, and what is counted of them. */
static bool
sound_gpu_lists(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    const struct gpu_group *group = gpu_group_at(engine, gpu->gpu_group);

    if (gpu->first_partition
            ? partition_at(engine, gpu->first_partition)->gpu != slot
            : gpu->idle || gpu->leased || gpu->stuck || !bh_occupancy_is_empty(&gpu->occupancy))
        return false;
    if (gpu->next_on_node
        && (gpu_at(engine, gpu->next_on_node)->node != gpu->node
            || gpu_at(engine, gpu->next_on_node)->id <= gpu->id))
        return false;
    if (!gpu->gpu_group)
        return !gpu->pooled && !gpu->next_in_group && !gpu->prev_in_group;
    return gpu->pooled == 1 && group->gpus && group->model == gpu->model
           && (gpu->prev_in_group ? gpu_at(engine, gpu->prev_in_group)->next_in_group == slot
                                  : group->first == slot)
           && (!gpu->next_in_group || gpu_at(engine, gpu->next_in_group)->prev_in_group == slot)
           && sound_alike(&gpu->pooled_as, &gpu->occupancy)
           && sound_alike(&group->occupancy, &gpu->occupancy);
}

bool
bh_sound_gpu(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    const struct gpu_health *health = &gpu->health;

    if (!gpu->id || !node_at(engine, gpu->node)->id || gpu->model >= BH_GPU_MODELS
        || !(node_at(engine, gpu->node)->models >> gpu->model & 1))
        return false;
    if (gpu->fenced > FENCE_KEEPS || gpu->held >= BH_HELDS
        || gpu->counted > (GPU_OFFERED | GPU_EMPTY | GPU_OPEN) || gpu->layout >= BH_POOL_LAYOUTS
        || gpu->wanted.count > BH_LAYOUT_MAX || gpu->wanted.mode >= BH_LAYOUT_MODES
        || gpu->gpu_layout >= BH_LAYOUT_STATES)
        return false;
    if (health->state >= BH_HEALTHS || health->served > 1 || !sound_same(health->waiting, health->order)
        || (health->waiting && health->waiting != BH_FX_RESET + 1 && health->waiting != BH_FX_TEST + 1)
        || (health->state == BH_HEALTH_RESETTING && !health->waiting))
        return false;
    if (gpu->leased_compute + gpu->dedicated_compute + gpu->unusable_compute > BH_GPU_PARTS
        || gpu->leased_memory + gpu->dedicated_memory + gpu->unusable_memory > BH_GPU_PARTS
        || (gpu->dedicated_to && gpu->dedicated_to != node_at(engine, gpu->node)->dedicated_to)
        || (gpu->claimed && engine->core.claim_count == 0))
        return false;
    return sound_same(gpu->occupancy.shared, gpu->share_scale) && sound_gpu_lists(engine, slot);
}

/* Which effect a partition waits for in its state. */
static bool
sound_partition_waits(const struct partition *partition)
{
    uint32_t expected = 0;

    if (!sound_same(partition->waiting, partition->order))
        return false;
    if (partition->state == BH_PARTITION_CARVING && !partition->gone)
        expected = BH_FX_CARVE + 1;
    if (partition->state == BH_PARTITION_CLEARING && (!partition->stuck || partition->waiting))
        expected = BH_FX_DESTROY + 1;
    return partition->waiting == expected;
}

bool
bh_sound_partition(const struct bh_engine *engine, uint32_t slot)
{
    const struct partition *partition = partition_at(engine, slot),
                           *next = partition_at(engine, partition->next_on_gpu);
    const struct gpu *gpu = gpu_at(engine, partition->gpu);
    const struct lease *lease = lease_at(engine, partition->lease);
    bool held = partition->state == BH_PARTITION_LEASED;

    if (!partition->id || partition->id >= engine->core.next_partition || !gpu->id
        || partition->state > BH_PARTITION_CLEARING || partition->start >= STARTS_MAX
        || partition->profile == 0)
        return false;
    if (partition->gone > 1 || partition->stuck > 1 || partition->evict >= BH_END_CAUSES
        || (partition->stuck && (partition->state != BH_PARTITION_CLEARING || gpu->stuck == 0))
        || (partition->gone && partition->state != BH_PARTITION_CARVING && lease->state != LEASE_STOPPING)
        || (partition->unheard && !held) || (partition->evict && !partition->lease))
        return false;
    if (partition->next_on_gpu && (next->gpu != partition->gpu || next == partition))
        return false;
    if ((held && gpu->leased == 0) || (partition->state == BH_PARTITION_IDLE && gpu->idle == 0)
        || (held && partition->unheard == node_at(engine, gpu->node)->up))
        return false;
    if (partition->lease
        && (lease->node != gpu->node || tenant_at(engine, lease->tenant)->id != partition->tenant
            || (!held && partition->state != BH_PARTITION_CARVING)))
        return false;
    return (!held || partition->lease) && sound_partition_waits(partition);
}

/* ---- jobs and leases ---- */

bool
bh_sound_class(const struct bh_engine *engine, uint32_t slot)
{
    const struct class *class = class_at(engine, slot);
    const struct job *head = job_at(engine, class->head), *tail = job_at(engine, class->tail);

    if (!class->id || class->jobs == 0 || class->jobs > engine->core.pending
        || sound_same(class->jobs == 1, head != tail))
        return false;
    if (head->class != slot || tail->class != slot || head->prev || tail->next
        || head->sequence > tail->sequence)
        return false;
    return head->state == BH_JOB_PENDING && head->tenant == class->tenant && head->sku == class->sku
           && head->principal == class->principal && head->count == class->count && head->gang == class->gang
           && head->priority == class->priority && head->hold == class->hold
           && head->cpu_milli == class->cpu_milli && head->memory_mib == class->memory_mib;
}

/* Its neighbors in the queue know it. */
static bool
sound_job_queued(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot), *next = job_at(engine, job->next),
                     *prev = job_at(engine, job->prev);
    const struct class *class = class_at(engine, job->class);

    if (job->state != BH_JOB_PENDING || job->lease || !class->id || class->tenant != job->tenant
        || class->sku != job->sku)
        return false;
    if (job->next ? next->prev != slot || next->class != job->class || next->sequence <= job->sequence
                  : class->tail != slot)
        return false;
    return job->prev ? prev->next == slot && prev->class == job->class : class->head == slot;
}

bool
bh_sound_job(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot);
    const struct lease *lease = lease_at(engine, job->lease);

    if (!job->id || job->count == 0 || job->gang == 0 || job->count > BH_JOB_COUNT_MAX
        || job->gang > BH_JOB_GANG_MAX || job->kind >= BH_JOB_KINDS || job->contract >= BH_CONTRACTS
        || job->priority < BH_PRIORITY_LOW || job->priority >= BH_PRIORITIES || job->state >= BH_JOB_STATES
        || job->cause >= BH_END_CAUSES || job->verdict >= BH_END_CAUSES)
        return false;
    if (job->sequence >= engine->core.next_sequence || job->submitted_ns > engine->core.now_ns
        || job->started_ns > engine->core.now_ns || job->claims_window > engine->core.window
        || !tenant_at(engine, job->tenant)->id || !sku_at(engine, job->sku)->id
        || tenant_at(engine, job->tenant)->jobs == 0 || sku_at(engine, job->sku)->jobs == 0)
        return false;
    if (job->class)
        return sound_job_queued(engine, slot);
    if (job->lease)
        return job->state > BH_JOB_PENDING && job->state < BH_JOB_COMPLETED && lease->job == slot
               && lease->member == 0 && lease->tenant == job->tenant
               && tenant_at(engine, job->tenant)->running;
    return job->state >= BH_JOB_COMPLETED && engine->core.ended_count;
}

/* Its neighbors among those that leave know it. */
static bool
sound_lease_listed(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);

    if (lease->state != LEASE_SUSPENDING && lease->state != LEASE_STOPPING)
        return !lease->next_leaving && !lease->prev_leaving;
    return (lease->prev_leaving ? lease_at(engine, lease->prev_leaving)->next_leaving == slot
                                : engine->core.leaving == slot)
           && (!lease->next_leaving || lease_at(engine, lease->next_leaving)->prev_leaving == slot);
}

/* It is the member of its gang that it says, and waits for what its state waits for. */
static bool
sound_lease_joined(const struct bh_engine *engine, uint32_t slot)
{
    static const uint8_t waits[LEASE_STATES] = { [LEASE_STARTING] = BH_FX_START + 1,
                                                 [LEASE_SUSPENDING] = BH_FX_SUSPEND + 1,
                                                 [LEASE_RESUMING] = BH_FX_RESUME + 1,
                                                 [LEASE_STOPPING] = BH_FX_STOP + 1 };
    const struct lease *lease = lease_at(engine, slot), *next = lease_at(engine, lease->next_member);
    const struct job *job = job_at(engine, lease->job);

    return job->id && job->tenant == lease->tenant && job->count == lease->count && job->class == 0
           && lease_at(engine, job->lease)->id + lease->member == lease->id
           && sound_same(lease->next_member == 0, lease->member + 1 == job->gang)
           && (!lease->next_member || (next->job == lease->job && next->member == lease->member + 1))
           && lease->waiting == waits[lease->state] && sound_same(lease->waiting, lease->order);
}

/* It has its partitions, or none. */
static bool
sound_lease_held(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);
    bool aside = lease->state == LEASE_SUSPENDED || lease->state == LEASE_DONE;

    if (aside || (lease->state == LEASE_STOPPING && !lease->parts[0]))
        return lease->parts[0] == 0;
    for (uint32_t i = 0; i < lease->count; i++) {
        const struct partition *partition = partition_at(engine, lease->parts[i]);

        if (partition->lease != slot || partition->profile != lease->placements[i].profile
            || partition->start != lease->placements[i].start
            || gpu_at(engine, partition->gpu)->id != lease->placements[i].gpu
            || gpu_at(engine, partition->gpu)->node != lease->node
            || (partition->state == BH_PARTITION_CARVING && lease->state != LEASE_CARVING
                && lease->state != LEASE_RECARVING && lease->state != LEASE_STOPPING))
            return false;
    }
    return true;
}

bool
bh_sound_lease(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);

    if (!lease->id || lease->id >= engine->core.next_lease || lease->state == LEASE_NONE
        || lease->state >= LEASE_STATES || lease->count == 0 || lease->count > BH_JOB_COUNT_MAX
        || lease->grade >= BH_GRADES || lease->stop_cause >= BH_END_CAUSES
        || lease->since_ns > engine->core.now_ns)
        return false;
    if (!node_at(engine, lease->node)->id
        || (lease->state != LEASE_DONE && node_at(engine, lease->node)->leases == 0)
        || (lease->state == LEASE_SUSPENDED && engine->core.suspended == 0))
        return false;
    return sound_lease_joined(engine, slot) && sound_lease_listed(engine, slot)
           && sound_lease_held(engine, slot);
}

bool
bh_sound_claim(const struct bh_engine *engine, const struct claim *claim)
{
    const struct job *job = job_at(engine, claim->job);
    const struct gpu *first = gpu_at(engine, gpu_find(engine, claim->placements[0].gpu));

    if (!job->id || claim->count == 0 || claim->count > BH_JOB_PARTITIONS_MAX
        || claim->count % job->count != 0 || (!job->lease && claim->count != (uint32_t)job->count * job->gang)
        || (!job->class && !job->lease))
        return false;
    return first->id && first->claimed && claim->placements[claim->count - 1].gpu
           && (claim->count == BH_JOB_PARTITIONS_MAX || claim->placements[claim->count].gpu == 0)
           && claim->placements[0].profile && claim->placements[0].start < STARTS_MAX
           && claim->equivalent == claim->count * sound_equivalent(claim->placements[0].profile)
           && (claim->at_ns == 0 || engine->core.reserved);
}

/* ---- the whole ---- */

bool
bh_sound_core(const struct bh_engine *engine)
{
    const struct core *core = &engine->core;
    const struct table *tables = engine->tables;
    uint32_t jobs = tables[TABLE_JOB].live, leases = tables[TABLE_LEASE].live, gpus = tables[TABLE_GPU].live;

    if (!core->next_lease || !core->next_partition || !core->next_sequence || !core->generation
        || !core->window || core->half_life_began_ns > core->now_ns || core->settings.order >= BH_ORDERS
        || core->settings.assumed_run_ns == 0)
        return false;
    if (core->pending + core->ended_count > jobs || core->pending_members < core->pending
        || !sound_same(core->pending, tables[TABLE_CLASS].live)
        || !sound_same(core->ended_head, core->ended_count)
        || sound_same(core->pending + core->ended_count == jobs, leases))
        return false;
    if (core->reserved > core->claim_count || core->claim_count > CLAIMS_MAX || core->suspended > leases
        || core->dedicated > tables[TABLE_TENANT].live || core->withholders > tables[TABLE_TENANT].live
        || core->declared > gpus || core->to_service > gpus || core->unchecked > tables[TABLE_NODE].live
        || core->pool_count > POOLS_MAX || core->demand.count > WANTS_MAX)
        return false;
    return core->totals.rate_physical == (uint64_t)gpus * BH_GPU_PARTS;
}

const char *
bh_sound_broken(const struct bh_engine *engine, uint64_t *ret_slot)
{
    static const struct {
        const char *name;
        bool (*is_sound)(const struct bh_engine *, uint32_t);
    } tables[TABLES] = {
        [TABLE_TENANT] = { "tenant", bh_sound_tenant },
        [TABLE_SKU] = { "sku", bh_sound_sku },
        [TABLE_NODE] = { "node", bh_sound_node },
        [TABLE_GPU] = { "gpu", bh_sound_gpu },
        [TABLE_JOB] = { "job", bh_sound_job },
        [TABLE_LEASE] = { "lease", bh_sound_lease },
        [TABLE_CLASS] = { "class", bh_sound_class },
        [TABLE_PARTITION] = { "partition", bh_sound_partition },
    };

    for (uint32_t kind = 0; kind < TABLES; kind++)
        for (uint32_t slot = 0; tables[kind].name && bh_slot_next(engine, (enum table_kind)kind, &slot);)
            if (!tables[kind].is_sound(engine, (uint32_t)(*ret_slot = slot)))
                return tables[kind].name;
    for (*ret_slot = 0; *ret_slot < CLAIMS_MAX; ++*ret_slot)
        if (engine->core.claims[*ret_slot].job && !bh_sound_claim(engine, &engine->core.claims[*ret_slot]))
            return "claim";
    return bh_sound_core(engine) ? NULL : "core";
}
