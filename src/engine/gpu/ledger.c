#include "engine/gpu/ledger.h"

#include "base/assert.h"
#include "engine/account/usage.h"
#include "engine/gpu/capacity.h"
#include "engine/gpu/node_index.h"
#include "engine/gpu/pool.h"
#include "engine/state/slots.h"

void
bh_ledger_advance(struct bh_engine *engine, uint64_t now_ns)
{
    struct totals *totals = &engine->core.totals;
    uint64_t elapsed = now_ns - engine->core.now_ns;

    BH_ASSERT(now_ns >= engine->core.now_ns);
    BH_ASSERT(totals->rate_leased_compute + totals->rate_unusable_compute <= totals->rate_physical);
    BH_ASSERT(totals->rate_leased_memory + totals->rate_unusable_memory <= totals->rate_physical);
    totals->physical += (bh_part_ns)totals->rate_physical * elapsed;
    totals->leased_compute += (bh_part_ns)totals->rate_leased_compute * elapsed;
    totals->leased_memory += (bh_part_ns)totals->rate_leased_memory * elapsed;
    totals->unusable_compute += (bh_part_ns)totals->rate_unusable_compute * elapsed;
    totals->unusable_memory += (bh_part_ns)totals->rate_unusable_memory * elapsed;
    for (int i = 0; i < BH_UNUSABLES; i++) {
        totals->causes_compute[i] += (bh_part_ns)totals->rate_causes_compute[i] * elapsed;
        totals->causes_memory[i] += (bh_part_ns)totals->rate_causes_memory[i] * elapsed;
    }
    engine->core.now_ns = now_ns;
}

/* ---- tenants ---- */

struct bh_parts
bh_ledger_charge(const struct gpu *gpu, uint32_t profile)
{
    struct bh_parts parts = bh_profile_parts((bh_profile_id){ profile });

    if (bh_profile_is_share((bh_profile_id){ profile }) && gpu->share_scale > BH_GPU_PARTS)
        parts.compute = parts.compute * BH_GPU_PARTS / gpu->share_scale;
    return parts;
}

void
bh_ledger_usage(const struct bh_engine *engine, uint32_t row, uint64_t now_ns, bh_part_ns *ret_compute,
                bh_part_ns *ret_memory)
{
    const struct metered *metered = metered_at(engine, row);
    bh_part_ns elapsed = now_ns > metered->since_ns ? now_ns - metered->since_ns : 0;

    *ret_compute = metered->compute_ns + metered->rate_compute * elapsed;
    *ret_memory = metered->memory_ns + metered->rate_memory * elapsed;
}

void
bh_ledger_dedicated(const struct bh_engine *engine, uint32_t row, uint64_t now_ns, bh_part_ns *ret_compute,
                    bh_part_ns *ret_memory)
{
    const struct metered *metered = metered_at(engine, row);
    bh_part_ns elapsed = now_ns > metered->since_ns ? now_ns - metered->since_ns : 0;

    *ret_compute = metered->dedicated_compute_ns + metered->rate_dedicated_compute * elapsed;
    *ret_memory = metered->dedicated_memory_ns + metered->rate_dedicated_memory * elapsed;
}

/* The tenant's row, brought up to now. */
static struct metered *
ledger_update(struct bh_engine *engine, uint32_t slot)
{
    uint32_t row = tenant_at(engine, slot)->metered;
    struct metered *metered = metered_at(engine, row);
    bh_part_ns compute, memory;

    BH_ASSERT(slot != 0);
    BH_ASSERT(row != 0);
    BH_ASSERT(metered->id == tenant_at(engine, slot)->id);
    BH_ASSERT(metered->since_ns <= engine->core.now_ns);
    bh_ledger_dedicated(engine, row, engine->core.now_ns, &metered->dedicated_compute_ns,
                        &metered->dedicated_memory_ns);
    bh_ledger_usage(engine, row, engine->core.now_ns, &compute, &memory);
    metered->compute_ns = compute;
    metered->memory_ns = memory;
    metered->since_ns = engine->core.now_ns;
    return metered;
}

void
bh_ledger_open(struct bh_engine *engine, uint32_t slot)
{
    struct tenant *tenant = tenant_at(engine, slot);
    uint32_t row = metered_find(engine, tenant->id);

    BH_ASSERT(slot != 0);
    BH_ASSERT(tenant->id != 0 && tenant->metered == 0);
    tenant->metered = row ? row : bh_slot_add(engine, TABLE_METERED, tenant->id);
    metered_at(engine, tenant->metered)->since_ns = engine->core.now_ns;
}

void
bh_ledger_leave(struct bh_engine *engine, uint32_t slot)
{
    const struct metered *metered = ledger_update(engine, slot);

    BH_ASSERT(metered->rate_compute == 0 && metered->rate_memory == 0);
    BH_ASSERT(tenant_at(engine, slot)->used == 0);
    if (metered->compute_ns == 0 && metered->memory_ns == 0)
        bh_slot_remove(engine, TABLE_METERED, tenant_at(engine, slot)->metered);
}

void
bh_ledger_acquire(struct bh_engine *engine, uint32_t slot, struct bh_parts parts)
{
    struct metered *metered = ledger_update(engine, slot);

    BH_ASSERT(parts.compute <= BH_GPU_PARTS && parts.memory <= BH_GPU_PARTS);
    BH_ASSERT(metered->rate_compute <= engine->core.totals.rate_physical);
    metered->rate_compute += parts.compute;
    metered->rate_memory += parts.memory;
}

void
bh_ledger_release(struct bh_engine *engine, uint32_t slot, struct bh_parts parts)
{
    struct metered *metered = ledger_update(engine, slot);

    BH_ASSERT(metered->rate_compute >= parts.compute);
    BH_ASSERT(metered->rate_memory >= parts.memory);
    metered->rate_compute -= parts.compute;
    metered->rate_memory -= parts.memory;
}

void
bh_ledger_debit(struct bh_engine *engine, uint32_t slot, struct bh_parts parts, uint64_t span_ns,
                uint64_t had_ns)
{
    struct totals *totals = &engine->core.totals;
    struct metered *metered = ledger_update(engine, slot);
    bh_part_ns compute = (bh_part_ns)parts.compute * had_ns;
    bh_part_ns memory = (bh_part_ns)parts.memory * had_ns;

    BH_ASSERT(had_ns <= span_ns);
    BH_ASSERT(metered->id != 0);
    metered->compute_ns += compute;
    metered->memory_ns += memory;
    totals->leased_compute += compute;
    totals->leased_memory += memory;
    totals->unusable_compute -= compute;
    totals->unusable_memory -= memory;
    totals->causes_compute[BH_UNUSABLE_UNHEARD] -= (bh_part_ns)parts.compute * span_ns;
    totals->causes_memory[BH_UNUSABLE_UNHEARD] -= (bh_part_ns)parts.memory * span_ns;
    totals->causes_compute[BH_UNUSABLE_AWAY] += (bh_part_ns)parts.compute * (span_ns - had_ns);
    totals->causes_memory[BH_UNUSABLE_AWAY] += (bh_part_ns)parts.memory * (span_ns - had_ns);
}

/* Whether what is kept aside is what the partitions say that nothing is heard of. */
static bool
ledger_is_unheard_whole(const struct bh_engine *engine)
{
    const struct totals *totals = &engine->core.totals;
    bh_part_ns compute = 0, memory = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_PARTITION, &slot);) {
        const struct partition *partition = partition_at(engine, slot);
        struct bh_parts parts = bh_ledger_charge(gpu_at(engine, partition->gpu), partition->profile);

        if (!partition->unheard)
            continue;
        compute += (bh_part_ns)parts.compute * (engine->core.now_ns - partition->unheard_ns);
        memory += (bh_part_ns)parts.memory * (engine->core.now_ns - partition->unheard_ns);
    }
    return compute == totals->causes_compute[BH_UNUSABLE_UNHEARD]
           && memory == totals->causes_memory[BH_UNUSABLE_UNHEARD];
}

const char *
bh_ledger_broken(const struct bh_engine *engine)
{
    const struct totals *totals = &engine->core.totals;
    bh_part_ns compute = 0, memory = 0, row_compute, row_memory;
    uint64_t rate_compute = 0, rate_memory = 0;

    for (uint32_t row = 0; bh_slot_next(engine, TABLE_METERED, &row);) {
        bh_ledger_usage(engine, row, engine->core.now_ns, &row_compute, &row_memory);
        compute += row_compute;
        memory += row_memory;
        rate_compute += metered_at(engine, row)->rate_compute;
        rate_memory += metered_at(engine, row)->rate_memory;
    }
    if (rate_compute != totals->rate_leased_compute || rate_memory != totals->rate_leased_memory)
        return "tenants' rates are not those of the GPUs";
    if (compute != totals->leased_compute || memory != totals->leased_memory)
        return "tenants' usage is not that of the GPUs";
    if (totals->leased_compute + totals->unusable_compute > totals->physical
        || totals->leased_memory + totals->unusable_memory > totals->physical)
        return "more was used than there is";
    if (!ledger_is_unheard_whole(engine))
        return "what nothing is heard of is not that of the partitions";
    return NULL;
}

/* ---- GPUs ---- */

static uint32_t
ledger_span_of(const struct bh_profile *profile, uint32_t start)
{
    return ((1u << profile->memory_units) - 1) << start;
}

/* The most compute slices that any profiles could still take of the free memory
 * units: the best way to fill them, from the last unit down. */
static uint32_t
ledger_usable_slices(enum bh_gpu_model model, uint32_t free_units, uint32_t units)
{
    uint32_t best[33] = { 0 };
    uint32_t count;
    const struct bh_profile *first = bh_profile_first(model, &count);

    for (uint32_t at = units; at-- > 0;) {
        best[at] = best[at + 1];
        for (const struct bh_profile *profile = first; profile < first + count; profile++) {
            uint32_t span = ledger_span_of(profile, at), taken;

            if (!(profile->starts >> at & 1) || (free_units & span) != span)
                continue;
            taken = profile->compute_slices + best[at + profile->memory_units];
            best[at] = taken > best[at] ? taken : best[at];
        }
    }
    return best[0];
}

/* The free memory units that some profile could still take. */
static uint32_t
ledger_usable_units(enum bh_gpu_model model, const struct bh_occupancy *occupancy)
{
    uint32_t count, reached = 0;
    const struct bh_profile *profile = bh_profile_first(model, &count);

    for (; count > 0; count--, profile++)
        for (uint32_t starts = profile->starts; starts; starts &= starts - 1) {
            uint32_t start = (uint32_t)__builtin_ctz(starts);

            if (bh_occupancy_fits(occupancy, profile, start))
                reached |= ledger_span_of(profile, start);
        }
    return reached;
}

static uint64_t
ledger_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What could still be given out of a GPU that is partly taken. */
static struct bh_parts
ledger_rest_of(enum bh_gpu_model model, const struct bh_occupancy *occupancy)
{
    const struct bh_model_facts *facts = bh_model_facts(model);
    uint32_t free_units, slices;

    if (occupancy->whole)
        return (struct bh_parts){ 0, 0 };
    if (occupancy->units == 0 || !facts)
        return (struct bh_parts){ BH_GPU_PARTS, BH_GPU_PARTS };
    free_units = ~occupancy->units & ((1u << facts->memory_units) - 1);
    slices = (uint32_t)ledger_least(facts->compute_slices - occupancy->slices,
                                    ledger_usable_slices(model, free_units, facts->memory_units));
    return (struct bh_parts){
        (uint64_t)slices * (BH_GPU_PARTS / facts->compute_slices),
        (uint64_t)__builtin_popcount(ledger_usable_units(model, occupancy))
            * (BH_GPU_PARTS / facts->memory_units),
    };
}

/* The parts of its partitions in a state.  Partitions being cleared are no longer in the occupancy;
 * their parts come back when they are gone, as far as nothing new stands there already. */
static struct bh_parts
ledger_in_state(const struct bh_engine *engine, const struct gpu *gpu, enum bh_partition_state state)
{
    struct bh_parts sum = { 0, 0 };

    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->state == state)
            sum = bh_parts_add(sum, bh_ledger_charge(gpu, partition->profile));
    }
    return sum;
}

/* Why a GPU that gets no new work gets none. */
static enum bh_unusable
ledger_cause_of(const struct bh_engine *engine, const struct gpu *gpu)
{
    const struct node *node = node_at(engine, gpu->node);

    if (!gpu->managed || !node->up)
        return BH_UNUSABLE_AWAY;
    if (gpu->fenced || !bh_capacity_is_healthy(gpu))
        return BH_UNUSABLE_FAULT;
    return gpu->cordoned || gpu->held || node->held ? BH_UNUSABLE_CORDONED : BH_UNUSABLE_AWAY;
}

/* Memory that a shared GPU keeps back: none when it is not shared. */
static uint64_t
ledger_withheld_parts(const struct gpu *gpu)
{
    enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;
    uint64_t slots = (uint64_t)__builtin_popcount(gpu->occupancy.shares);

    return gpu->occupancy.shared ? bh_share_reserve_parts(model) + slots * bh_share_context_parts(model) : 0;
}

/* What could still be sold of a GPU that is shared: what no lease has, and is not kept back. */
static struct bh_parts
ledger_rest_of_shared(const struct bh_engine *engine, const struct gpu *gpu)
{
    struct bh_parts taken = bh_parts_add(ledger_in_state(engine, gpu, BH_PARTITION_LEASED),
                                         ledger_in_state(engine, gpu, BH_PARTITION_CARVING));

    taken.memory += ledger_withheld_parts(gpu);
    return (struct bh_parts){ BH_GPU_PARTS - ledger_least(BH_GPU_PARTS, taken.compute),
                              BH_GPU_PARTS - ledger_least(BH_GPU_PARTS, taken.memory) };
}

/* What is leased while it is not known whether it still is: all of it, or nothing. */
static struct bh_parts
ledger_unreported_parts(const struct bh_engine *engine, const struct gpu *gpu)
{
    return node_at(engine, gpu->node)->up ? (struct bh_parts){ 0, 0 }
                                          : ledger_in_state(engine, gpu, BH_PARTITION_LEASED);
}

static void
ledger_report_causes(const struct bh_engine *engine, const struct gpu *gpu, struct bh_split *split)
{
    struct bh_parts changing;

    for (int i = 0; i < BH_UNUSABLES; i++)
        split->causes[i] = (struct bh_parts){ 0, 0 };
    if (!bh_capacity_offered(engine, gpu)) {
        split->causes[BH_UNUSABLE_UNHEARD] = ledger_unreported_parts(engine, gpu);
        split->causes[ledger_cause_of(engine, gpu)] =
            bh_parts_sub(split->unusable, split->causes[BH_UNUSABLE_UNHEARD]);
        return;
    }
    changing = bh_parts_add(ledger_in_state(engine, gpu, BH_PARTITION_CARVING),
                            ledger_in_state(engine, gpu, BH_PARTITION_CLEARING));
    changing.compute = ledger_least(changing.compute, split->unusable.compute);
    changing.memory = ledger_least(changing.memory, split->unusable.memory);
    split->causes[BH_UNUSABLE_CARVING] = changing;
    split->causes[BH_UNUSABLE_RESERVE].memory =
        ledger_least(ledger_withheld_parts(gpu), split->unusable.memory - changing.memory);
    split->causes[BH_UNUSABLE_GEOMETRY] =
        bh_parts_sub(bh_parts_sub(split->unusable, changing), split->causes[BH_UNUSABLE_RESERVE]);
}

/* On a dedicated node the tenant has what no other can: all but what is being made or
 * cleared. */
static void
ledger_dedicate(struct bh_split *split)
{
    struct bh_parts changing = split->causes[BH_UNUSABLE_CARVING];

    split->dedicated = bh_parts_add(split->idle, bh_parts_sub(split->unusable, changing));
    split->idle = (struct bh_parts){ 0, 0 };
    split->unusable = changing;
    split->causes[BH_UNUSABLE_GEOMETRY] = (struct bh_parts){ 0, 0 };
    split->causes[BH_UNUSABLE_RESERVE] = (struct bh_parts){ 0, 0 };
}

void
bh_ledger_split(const struct bh_engine *engine, uint32_t slot, struct bh_split *ret_split)
{
    static const struct bh_parts all = { BH_GPU_PARTS, BH_GPU_PARTS };
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_parts idle = { 0, 0 }, leased = ledger_in_state(engine, gpu, BH_PARTITION_LEASED);

    if (bh_capacity_offered(engine, gpu)) {
        struct bh_parts clearing = ledger_in_state(engine, gpu, BH_PARTITION_CLEARING);

        idle = gpu->occupancy.shared ? ledger_rest_of_shared(engine, gpu)
                                     : ledger_rest_of((enum bh_gpu_model)gpu->model, &gpu->occupancy);
        idle.compute -= ledger_least(idle.compute, clearing.compute);
        idle.memory -= ledger_least(idle.memory, clearing.memory);
    }
    leased = bh_parts_sub(leased, ledger_unreported_parts(engine, gpu));
    ret_split->leased = leased;
    ret_split->dedicated = (struct bh_parts){ 0, 0 };
    ret_split->idle = idle;
    ret_split->unusable = bh_parts_sub(bh_parts_sub(all, leased), idle);
    ledger_report_causes(engine, gpu, ret_split);
    if (node_at(engine, gpu->node)->dedicated_to && bh_capacity_offered(engine, gpu))
        ledger_dedicate(ret_split);
}

/* How the GPU counts now, and the sums over its node and its model. */
static void
ledger_recount(struct bh_engine *engine, uint32_t slot)
{
    struct gpu *gpu = gpu_at(engine, slot);
    struct core *core = &engine->core;
    struct node *node = node_at(engine, gpu->node);
    uint8_t before = gpu->counted, now = 0;

    BH_ASSERT(gpu->id != 0 && node->id != 0);
    BH_ASSERT(gpu->model < BH_GPU_MODELS && before <= (GPU_OFFERED | GPU_EMPTY | GPU_OPEN));
    BH_ASSERT(node->empty >= !!(before & GPU_EMPTY) && node->open >= !!(before & GPU_OPEN));
    BH_ASSERT(core->empty[gpu->model] >= node->empty || node->models != 1u << gpu->model);
    BH_ASSERT(core->offered[gpu->model] >= core->open[gpu->model]
              && core->open[gpu->model] >= core->empty[gpu->model]);
    if (bh_capacity_offered(engine, gpu)) {
        bool empty = gpu->occupancy.units == 0 && !gpu->occupancy.whole;

        now = (uint8_t)(GPU_OFFERED | (empty ? GPU_EMPTY | GPU_OPEN : 0)
                        | (bh_occupancy_is_full(&gpu->occupancy, (enum bh_gpu_model)gpu->model) ? 0
                                                                                                : GPU_OPEN));
    }
    bh_pool_follow(engine, slot, now & GPU_OFFERED);
    if (now == before)
        return;
    gpu->counted = now;
    bh_node_index_invalidate(engine, gpu->node);
    core->offered[gpu->model] += !!(now & GPU_OFFERED) - !!(before & GPU_OFFERED);
    core->empty[gpu->model] += !!(now & GPU_EMPTY) - !!(before & GPU_EMPTY);
    core->open[gpu->model] += !!(now & GPU_OPEN) - !!(before & GPU_OPEN);
    node->empty += !!(now & GPU_EMPTY) - !!(before & GPU_EMPTY);
    node->open += !!(now & GPU_OPEN) - !!(before & GPU_OPEN);
}

/* ---- what dedication keeps from others ---- */

/* The GPU-equivalents of what the GPU's leases have. */
static uint64_t
ledger_equivalent_of_leases(const struct bh_engine *engine, const struct gpu *gpu)
{
    uint64_t sum = 0;

    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->state == BH_PARTITION_LEASED)
            sum += bh_parts_equivalent(bh_ledger_charge(gpu, partition_at(engine, at)->profile));
    return sum;
}

/* Charge the tenant for what the GPU's row says, or cease to. */
static void
ledger_charge_dedicated(struct bh_engine *engine, const struct gpu *gpu, bool begins)
{
    struct bh_parts parts = { gpu->dedicated_compute, gpu->dedicated_memory };
    uint32_t at = gpu->dedicated_to;
    uint64_t sign = begins ? 1 : UINT64_MAX;
    struct metered *metered;

    BH_ASSERT(at == 0 || tenant_at(engine, at)->id != 0);
    if (at == 0)
        return;
    (begins ? bh_ledger_acquire : bh_ledger_release)(engine, at, parts);
    metered = metered_at(engine, tenant_at(engine, at)->metered);
    metered->rate_dedicated_compute += sign * parts.compute;
    metered->rate_dedicated_memory += sign * parts.memory;
    bh_usage_dedicate(engine, at, sign * gpu->dedicated_equivalent);
}

static void
ledger_follow_dedicated(struct bh_engine *engine, struct gpu *gpu, const struct bh_split *split)
{
    uint64_t all = bh_parts_equivalent(bh_parts_add(split->leased, split->dedicated));
    bool any = split->dedicated.compute || split->dedicated.memory;

    BH_ASSERT(gpu->dedicated_compute <= BH_GPU_PARTS && gpu->dedicated_memory <= BH_GPU_PARTS);
    if (!any && !gpu->dedicated_to)
        return;
    ledger_charge_dedicated(engine, gpu, false);
    gpu->dedicated_to = any ? node_at(engine, gpu->node)->dedicated_to : 0;
    gpu->dedicated_compute = (uint32_t)split->dedicated.compute;
    gpu->dedicated_memory = (uint32_t)split->dedicated.memory;
    gpu->dedicated_equivalent =
        any ? (uint32_t)(all - ledger_least(all, ledger_equivalent_of_leases(engine, gpu))) : 0;
    ledger_charge_dedicated(engine, gpu, true);
}

/* Whether the GPU counts its partitions as they are. */
static bool
ledger_counts_partitions(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    uint32_t idle = gpu->idle, leased = gpu->leased, stuck = gpu->stuck;

    for (uint32_t at = gpu->first_partition; at; at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->gpu != slot || partition->next_on_gpu == at)
            return false;
        idle -= partition->state == BH_PARTITION_IDLE;
        leased -= partition->state == BH_PARTITION_LEASED;
        stuck -= partition->stuck;
    }
    return (idle | leased | stuck) == 0;
}

void
bh_ledger_refresh(struct bh_engine *engine, uint32_t slot)
{
    struct totals *totals = &engine->core.totals;
    struct gpu *gpu = gpu_at(engine, slot);
    struct bh_split split;

    BH_ASSERT(ledger_counts_partitions(engine, slot));
    BH_ASSERT(totals->rate_leased_compute >= gpu->leased_compute + gpu->dedicated_compute);
    BH_ASSERT(totals->rate_leased_memory >= gpu->leased_memory + gpu->dedicated_memory);
    BH_ASSERT(totals->rate_unusable_compute >= gpu->unusable_compute);
    BH_ASSERT(totals->rate_unusable_memory >= gpu->unusable_memory);
    ledger_recount(engine, slot);
    bh_node_hint(engine, gpu->node)->end_ns = 0;
    bh_ledger_split(engine, slot, &split);
    totals->rate_leased_compute +=
        split.leased.compute + split.dedicated.compute - gpu->leased_compute - gpu->dedicated_compute;
    totals->rate_leased_memory +=
        split.leased.memory + split.dedicated.memory - gpu->leased_memory - gpu->dedicated_memory;
    totals->rate_unusable_compute += split.unusable.compute - gpu->unusable_compute;
    totals->rate_unusable_memory += split.unusable.memory - gpu->unusable_memory;
    ledger_follow_dedicated(engine, gpu, &split);
    gpu->leased_compute = (uint32_t)split.leased.compute;
    gpu->leased_memory = (uint32_t)split.leased.memory;
    gpu->unusable_compute = (uint32_t)split.unusable.compute;
    gpu->unusable_memory = (uint32_t)split.unusable.memory;
    for (int i = 0; i < BH_UNUSABLES; i++) {
        totals->rate_causes_compute[i] += split.causes[i].compute - gpu->causes_compute[i];
        totals->rate_causes_memory[i] += split.causes[i].memory - gpu->causes_memory[i];
        gpu->causes_compute[i] = (uint32_t)split.causes[i].compute;
        gpu->causes_memory[i] = (uint32_t)split.causes[i].memory;
    }
}
