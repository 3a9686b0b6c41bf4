#include "engine/read/check.h"

#include <string.h>

#include "base/attr.h"
#include "engine/account/quota.h"
#include "engine/account/tenant.h"
#include "engine/account/usage.h"
#include "engine/gpu/dedication.h"
#include "engine/gpu/gpu_form.h"
#include "engine/gpu/gpu_group.h"
#include "engine/gpu/health.h"
#include "engine/gpu/host.h"
#include "engine/gpu/layout.h"
#include "engine/gpu/ledger.h"
#include "engine/gpu/partition.h"
#include "engine/placement/placement.h"
#include "engine/placement/warm.h"
#include "engine/preempt/move.h"
#include "engine/preempt/preempt.h"
#include "engine/preempt/reserve.h"
#include "engine/queue/claim.h"
#include "engine/queue/preemptible.h"
#include "engine/queue/queue.h"
#include "engine/state/gang.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"
#include "engine/state/sound.h"

/* Where what is broken is written; the pure layer has no printf. */
struct check_inspection {
    const struct bh_engine *engine;
    char *text;
    size_t size, at;
};

static void
check_write_char(struct check_inspection *in, char c)
{
    if (in->at + 1 < in->size)
        in->text[in->at++] = c;
}

static void
check_write_text(struct check_inspection *in, const char *text)
{
    while (*text)
        check_write_char(in, *text++);
}

static void
check_write_number(struct check_inspection *in, uint64_t number)
{
    char digits[40];

    bh_part_ns_format(number, digits);
    check_write_text(in, digits);
}

/* "<what> <id>: <why>"; always false. */
static bool
check_report_broken(struct check_inspection *in, const char *what, uint64_t id, const char *why)
{
    check_write_text(in, what);
    check_write_char(in, ' ');
    check_write_number(in, id);
    check_write_text(in, ": ");
    check_write_text(in, why);
    if (in->size > 0)
        in->text[in->at] = '\0';
    return false;
}

/* ---- tables ---- */

static bool
check_is_zero(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;

    while (length > 0 && at[length - 1] == 0)
        length--;
    return length == 0;
}

static bool
check_table(struct check_inspection *in, enum table_kind kind)
{
    static const char *const names[TABLES] = {
        [TABLE_TENANT] = "tenant",
        [TABLE_SKU] = "sku",
        [TABLE_NODE] = "node",
        [TABLE_GPU] = "gpu",
        [TABLE_JOB] = "job",
        [TABLE_LEASE] = "lease",
        [TABLE_PARTITION] = "partition",
        [TABLE_CLASS] = "class",
        [TABLE_GPU_GROUP] = "group",
        [TABLE_METERED] = "ledger row",
    };
    const struct table *table = &in->engine->tables[kind];
    size_t head = offsetof(struct slot, next_free) + sizeof(uint32_t);
    uint32_t live = 0;

    if (!check_is_zero(bh_slot_at(in->engine, kind, 0), table->slot_size))
        return check_report_broken(in, names[kind], 0, "slot 0 was written");
    for (uint32_t slot = 1; slot <= table->high; slot++) {
        const struct slot *at = bh_slot_at(in->engine, kind, slot);

        live += at->id != 0;
        if (at->id && bh_slot_find(in->engine, kind, at->id) != slot)
            return check_report_broken(in, names[kind], at->id, "its index does not find it");
        if (!at->id && !check_is_zero((const char *)at + head, table->slot_size - head))
            return check_report_broken(in, names[kind], slot, "a free slot is not zero");
    }
    return live == table->live || check_report_broken(in, names[kind], live, "miscounted");
}

static bool
check_tables(struct check_inspection *in)
{
    for (uint32_t kind = 0; kind < TABLES; kind++)
        if (!check_table(in, (enum table_kind)kind))
            return false;
    return true;
}

/* ---- what is expected ---- */

static bool
check_shapes(struct check_inspection *in)
{
    const struct shapes *shapes = &in->engine->core.shapes;
    uint16_t unheld[PROFILES_MAX] = { 0 };
    uint32_t wanted = 0;

    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_PARTITION, &slot);) {
        const struct partition *partition = partition_at(in->engine, slot);

        if (partition->tenant != 0 || partition->state == BH_PARTITION_CLEARING)
            continue;
        if (partition->lease || partition->profile >= PROFILES_MAX)
            return check_report_broken(in, "partition", partition->id, "of no tenant, but leased");
        unheld[partition->profile]++;
    }
    for (uint32_t i = 0; i < PROFILES_MAX; i++)
        wanted += shapes->ready[i] > 0;
    if (memcmp(unheld, shapes->unheld, sizeof(unheld)) != 0 || wanted != shapes->wanted)
        return check_report_broken(in, "partition", wanted, "those of no tenant are miscounted");
    return true;
}

/* Expected use is in range, and tenants that keep something back are counted. */
static bool
check_expected(struct check_inspection *in)
{
    uint32_t withholders = 0;

    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_TENANT, &slot);) {
        const struct tenant *tenant = tenant_at(in->engine, slot);

        withholders += bh_tenant_withholds(tenant_at(in->engine, slot));
        if (tenant->expected > BH_AMOUNT_MAX)
            return check_report_broken(in, "tenant", tenant->id, "more is expected of it than can be");
    }
    return withholders == in->engine->core.withholders
           || check_report_broken(in, "withholders", withholders, "miscounted");
}

static bool
check_derived(struct check_inspection *in)
{
    uint64_t id = 0;
    const char *why = bh_layout_check(in->engine, &id);

    if (why)
        return check_report_broken(in, "gpu", id, why);
    why = bh_dedication_broken(in->engine, &id);
    if (why)
        return check_report_broken(in, "of", id, why);
    why = bh_sound_broken(in->engine, &id);
    if (why)
        return check_report_broken(in, why, id, "is not sound");
    return bh_gpu_form_check(in->engine)
           || check_report_broken(in, "forms", 0, "who may use a GPU has changed");
}

/* ---- GPUs ---- */

static bool
check_stack_part(const struct gpu *gpu, const struct partition *partition, struct bh_occupancy *occupancy)
{
    enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;

    if (!bh_partition_fits(occupancy, model, partition->profile, partition->start))
        return false;
    bh_partition_add(occupancy, model, partition->profile, partition->start);
    return true;
}

/* First the partitions in use, then the idle ones: together what the geometry allows. */
static bool
check_partitions(struct check_inspection *in, const struct gpu *gpu, uint32_t slot)
{
    /* shares were sold by the scale, whatever the site says by now */
    struct bh_occupancy occupancy = { .share_limit = gpu->share_scale };
    uint32_t idle = 0, leased = 0, stuck = 0;

    for (uint32_t at = gpu->first_partition; at; at = partition_at(in->engine, at)->next_on_gpu) {
        const struct partition *partition = partition_at(in->engine, at);

        idle += partition->state == BH_PARTITION_IDLE;
        leased += partition->state == BH_PARTITION_LEASED;
        stuck += partition->stuck;
        if (partition->gpu != slot)
            return check_report_broken(in, "partition", partition->id, "stands on another GPU than its list");
        if ((partition->state == BH_PARTITION_CARVING || partition->state == BH_PARTITION_LEASED)
            && !check_stack_part(gpu, partition, &occupancy))
            return check_report_broken(in, "partition", partition->id, "the geometry forbids it there");
        if (partition->state == BH_PARTITION_LEASED && !partition->lease)
            return check_report_broken(in, "partition", partition->id, "leased, but not held by a lease");
        if (partition->unheard
            != (partition->state == BH_PARTITION_LEASED && !node_at(in->engine, gpu->node)->up))
            return check_report_broken(in, "partition", partition->id,
                                       "its tenant is charged, or not, against its node");
        if (partition->unclean && partition->state != BH_PARTITION_CLEARING
            && !(partition->state == BH_PARTITION_CARVING && partition->gone))
            return check_report_broken(in, "partition", partition->id, "in use, and not clean");
        if ((partition->state == BH_PARTITION_IDLE || partition->state == BH_PARTITION_CLEARING)
            && partition->lease)
            return check_report_broken(in, "partition", partition->id, "idle, but has a lease");
    }
    if (gpu->occupancy.share_limit > gpu->share_limit || !gpu->occupancy.shared != !gpu->share_scale)
        return check_report_broken(in, "gpu", gpu->id, "is shared beyond what the site allows");
    occupancy.share_limit = gpu->occupancy.share_limit;
    if (memcmp(&occupancy, &gpu->occupancy, sizeof(occupancy)) != 0)
        return check_report_broken(in, "gpu", gpu->id, "its occupancy is not that of its partitions");
    occupancy.share_limit = BH_SHARE_OVERSUBSCRIBE_MAX * BH_GPU_PARTS; /* idle: not sold */
    for (uint32_t at = gpu->first_partition; at; at = partition_at(in->engine, at)->next_on_gpu)
        if (partition_at(in->engine, at)->state == BH_PARTITION_IDLE
            && !check_stack_part(gpu, partition_at(in->engine, at), &occupancy))
            return check_report_broken(in, "partition", partition_at(in->engine, at)->id,
                                       "idle where the geometry forbids it");
    if (idle != gpu->idle || leased != gpu->leased || stuck != gpu->stuck)
        return check_report_broken(in, "gpu", gpu->id, "partitions are miscounted");
    return true;
}

static bool
check_split(struct check_inspection *in, const struct gpu *gpu, uint32_t slot)
{
    struct bh_split split;
    struct bh_parts causes = { 0, 0 };

    bh_ledger_split(in->engine, slot, &split);
    for (int i = 0; i < BH_UNUSABLES; i++) {
        causes = bh_parts_add(causes, split.causes[i]);
        if (split.causes[i].compute != gpu->causes_compute[i]
            || split.causes[i].memory != gpu->causes_memory[i])
            return check_report_broken(in, "gpu", gpu->id, "why it is unusable is stale");
    }
    if (causes.compute != split.unusable.compute || causes.memory != split.unusable.memory)
        return check_report_broken(in, "gpu", gpu->id, "it is unusable without a cause");
    if (split.leased.compute + split.dedicated.compute + split.idle.compute + split.unusable.compute
            != BH_GPU_PARTS
        || split.leased.memory + split.dedicated.memory + split.idle.memory + split.unusable.memory
               != BH_GPU_PARTS)
        return check_report_broken(in, "gpu", gpu->id, "its parts do not add up");
    if (split.leased.compute != gpu->leased_compute || split.leased.memory != gpu->leased_memory
        || split.dedicated.compute != gpu->dedicated_compute
        || split.dedicated.memory != gpu->dedicated_memory || split.unusable.compute != gpu->unusable_compute
        || split.unusable.memory != gpu->unusable_memory)
        return check_report_broken(in, "gpu", gpu->id, "its ledger rates are stale");
    return true;
}

/* The counts that searches trust, of one node. */
static bool
check_counts(struct check_inspection *in, uint32_t slot)
{
    const struct node *node = node_at(in->engine, slot);
    uint32_t empty = 0, open = 0;

    for (uint32_t at = node->first_gpu; at; at = gpu_at(in->engine, at)->next_on_node) {
        const struct gpu *gpu = gpu_at(in->engine, at);
        bool offered = bh_capacity_offered(in->engine, gpu);

        empty += offered && gpu->occupancy.units == 0 && !gpu->occupancy.whole;
        open += offered && !bh_occupancy_is_full(&gpu->occupancy, (enum bh_gpu_model)gpu->model);
        if (!(node->models >> gpu->model & 1))
            return check_report_broken(in, "node", node->id, "does not know the model of a GPU");
    }
    return (empty == node->empty && open == node->open)
           || check_report_broken(in, "node", node->id, "its free GPUs are miscounted");
}

static bool
check_demand(struct check_inspection *in)
{
    const struct demand *demand = &in->engine->core.demand;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < demand->count; i++)
        sum += demand->asked[i].weight;
    return sum == demand->sum || check_report_broken(in, "demand", sum, "miscounted");
}

static bool
check_gpus(struct check_inspection *in)
{
    const struct totals *totals = &in->engine->core.totals;
    uint64_t physical = 0, leased = 0, unusable = 0;
    uint32_t crowded, astray, unchecked = 0;

    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(in->engine, slot);

        if (!check_partitions(in, gpu, slot) || !check_split(in, gpu, slot))
            return false;
        if (bh_health_broken(in->engine, slot))
            return check_report_broken(in, "gpu", gpu->id, bh_health_broken(in->engine, slot));
        physical += BH_GPU_PARTS;
        leased += gpu->leased_compute + gpu->leased_memory + gpu->dedicated_compute + gpu->dedicated_memory;
        unusable += gpu->unusable_compute + gpu->unusable_memory;
    }
    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_NODE, &slot);) {
        if (!check_counts(in, slot))
            return false;
        unchecked += node_at(in->engine, slot)->unchecked;
    }
    if (unchecked != in->engine->core.unchecked)
        return check_report_broken(in, "nodes", unchecked, "that are unchecked are miscounted");
    if (!bh_health_counted(in->engine))
        return check_report_broken(in, "gpus", 0, "that are reset or need a reboot are miscounted");
    if (!bh_gpu_group_check(in->engine, &astray))
        return check_report_broken(in, "gpu", gpu_at(in->engine, astray)->id, "stands in the wrong group");
    if (!bh_host_check(in->engine, &crowded))
        return check_report_broken(in, "node", node_at(in->engine, crowded)->id,
                                   "its cores, memory or leases are miscounted");
    if (physical != totals->rate_physical
        || leased != totals->rate_leased_compute + totals->rate_leased_memory
        || unusable != totals->rate_unusable_compute + totals->rate_unusable_memory)
        return check_report_broken(in, "ledger", 0, "the fleet's rates are not the sum of its GPUs");
    return true;
}

/* ---- leases ---- */

static bool
check_held(struct check_inspection *in, const struct lease *lease, uint32_t slot)
{
    bool aside = lease->state == LEASE_SUSPENDED || lease->state == LEASE_DONE;
    bool stopping_aside = lease->state == LEASE_STOPPING && !lease->parts[0];

    for (uint32_t i = 0; i < lease->count; i++) {
        const struct partition *partition = partition_at(in->engine, lease->parts[i]);

        if (!lease->parts[i] && (aside || stopping_aside))
            continue;
        if (!lease->parts[i] || aside)
            return check_report_broken(in, "lease", lease->id, "does not hold all its partitions");
        if (partition->lease != slot || partition->profile != lease->placements[i].profile
            || partition->start != lease->placements[i].start
            || gpu_at(in->engine, partition->gpu)->id != lease->placements[i].gpu)
            return check_report_broken(in, "lease", lease->id, "its partition is not where it says");
        if (partition->state == BH_PARTITION_CARVING && lease->state != LEASE_CARVING
            && lease->state != LEASE_RECARVING && lease->state != LEASE_STOPPING)
            return check_report_broken(in, "lease", lease->id, "runs on a partition that is not carved");
        if (gpu_at(in->engine, partition->gpu)->node != lease->node)
            return check_report_broken(in, "lease", lease->id, "its partitions stand on several nodes");
    }
    return true;
}

/* Which states the members of a gang may be in together, beside those that are done. */
static bool
check_is_in_step(const struct bh_engine *engine, uint32_t job)
{
    static const uint32_t together[] = {
        1u << LEASE_CARVING,
        1u << LEASE_STARTING | 1u << LEASE_RUNNING,
        1u << LEASE_SUSPENDING | 1u << LEASE_SUSPENDED,
        1u << LEASE_RECARVING,
        1u << LEASE_RESUMING | 1u << LEASE_RUNNING,
        1u << LEASE_STOPPING,
    };
    uint32_t states = 0;

    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        states |= 1u << lease_at(engine, at)->state;
    for (uint32_t i = 0; i < BH_COUNT(together); i++)
        if (states && (states & ~together[i]) == 0)
            return true;
    return false;
}

/* A job with leases has one for each member, of one incarnation, and they are at the same
 * point of their lives. */
static bool
check_gang(struct check_inspection *in, uint32_t slot)
{
    const struct job *job = job_at(in->engine, slot);
    const struct lease *first = lease_at(in->engine, job->lease);
    uint32_t members = 0;

    for (uint32_t at = job->lease; at; at = lease_at(in->engine, at)->next_member) {
        const struct lease *lease = lease_at(in->engine, at);

        if (lease->job != slot || lease->member != members || lease->id != first->id + members)
            return check_report_broken(in, "lease", lease->id, "is not the member its place says");
        members++;
    }
    if (members != job->gang)
        return check_report_broken(in, "job", job->id, "does not hold its whole gang");
    if (!check_is_in_step(in->engine, slot))
        return check_report_broken(in, "job", job->id, "has members in states that do not go together");
    return true;
}

static bool
check_lease(struct check_inspection *in, uint32_t slot)
{
    const struct lease *lease = lease_at(in->engine, slot);
    const struct job *job = job_at(in->engine, lease->job);
    struct bh_reason why;

    if (!job->id || job->lease == 0 || job->count != lease->count || job->tenant != lease->tenant)
        return check_report_broken(in, "lease", lease->id, "has no job of its own");
    if (job->class || job->state == BH_JOB_PENDING || job->state >= BH_JOB_COMPLETED)
        return check_report_broken(in, "job", job->id, "has a lease, but is queued or ended");
    if (!check_held(in, lease, slot))
        return false;
    if (!bh_capacity_lease_apart(in->engine, slot, &why))
        return check_report_broken(in, "lease", lease->id, "stands closer than a boundary allows");
    return true;
}

static bool
check_leases(struct check_inspection *in)
{
    const struct core *core = &in->engine->core;
    uint32_t suspended = 0, held = 0, leased = 0, members = 0, preemptible_jobs[BH_PRIORITIES + 1] = { 0 };

    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(in->engine, slot);
        const struct job *job = job_at(in->engine, lease->job);

        if (!check_lease(in, slot))
            return false;
        suspended += lease->state == LEASE_SUSPENDED;
        held += lease->parts[0] ? lease->count : 0;
        members += job->lease == slot ? job->gang : 0;
        preemptible_jobs[job->priority] += job->lease == slot && job->contract != BH_CONTRACT_NEVER;
    }
    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_PARTITION, &slot);)
        leased += partition_at(in->engine, slot)->lease != 0;
    if (members != in->engine->tables[TABLE_LEASE].live)
        return check_report_broken(in, "leases", members, "some belong to no gang");
    if (held != leased)
        return check_report_broken(in, "partition", leased, "held, but not all by leases that know it");
    if (suspended != core->suspended
        || memcmp(preemptible_jobs, core->preemptible_jobs, sizeof(preemptible_jobs)) != 0)
        return check_report_broken(in, "leases", suspended, "miscounted");
    return true;
}

/* ---- jobs and classes ---- */

static bool
check_class(struct check_inspection *in, uint32_t slot)
{
    const struct class *class = class_at(in->engine, slot);
    uint64_t sequence = 0;
    uint32_t jobs = 0, before = 0;

    for (uint32_t at = class->head; at; at = job_at(in->engine, at)->next) {
        const struct job *job = job_at(in->engine, at);

        if (job->class != slot || job->prev != before || job->state != BH_JOB_PENDING)
            return check_report_broken(in, "job", job->id, "is not what its place in the queue says");
        if (job->sequence <= sequence)
            return check_report_broken(in, "job", job->id, "queued out of order");
        sequence = job->sequence;
        before = at;
        jobs++;
    }
    if (jobs == 0 || jobs != class->jobs || before != class->tail)
        return check_report_broken(in, "class", slot, "its list is broken");
    return true;
}

static bool
check_all_jobs(struct check_inspection *in)
{
    const struct core *core = &in->engine->core;
    uint32_t queued = 0, pending = 0, ended = 0, listed = 0, members = 0;

    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_CLASS, &slot);) {
        if (!check_class(in, slot))
            return false;
        queued += class_at(in->engine, slot)->jobs;
    }
    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_JOB, &slot);) {
        const struct job *job = job_at(in->engine, slot);

        pending += job->state == BH_JOB_PENDING;
        members += job->state == BH_JOB_PENDING ? job->gang : 0;
        ended += job->state >= BH_JOB_COMPLETED;
        if ((job->state == BH_JOB_PENDING) != (job->class != 0))
            return check_report_broken(in, "job", job->id, "pending, but in no queue");
        if ((job->lease != 0) == (job->state == BH_JOB_PENDING || job->state >= BH_JOB_COMPLETED))
            return check_report_broken(in, "job", job->id, "its state and its lease disagree");
        if (job->lease && !check_gang(in, slot))
            return false;
    }
    for (uint32_t at = core->ended_head; at; at = job_at(in->engine, at)->next)
        listed++;
    if (queued != pending || pending != core->pending || ended != core->ended_count
        || members != core->pending_members || listed != ended)
        return check_report_broken(in, "jobs", pending, "miscounted");
    return true;
}

/* How many places of claims and reservations stand on the GPU. */
static uint32_t
check_placements_reserved_on(const struct bh_engine *engine, uint32_t gpu_id)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < CLAIMS_MAX; i++)
        for (uint32_t k = 0; k < engine->core.claims[i].count; k++)
            found += engine->core.claims[i].placements[k].gpu == gpu_id;
    return found;
}

/* Each GPU counts the places that are kept on it: searches trust that to pass over the rest.
 * Where those with a place count right and the sum is right, all do. */
static bool
check_reserved(struct check_inspection *in)
{
    uint64_t kept = 0, counted = 0;

    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = &in->engine->core.claims[i];

        for (uint32_t k = 0; k < claim->count; k++) {
            uint32_t id = claim->placements[k].gpu, gpu = gpu_find(in->engine, id);

            if (!gpu || gpu_at(in->engine, gpu)->claimed != check_placements_reserved_on(in->engine, id))
                return check_report_broken(in, "gpu", id, "what is kept on it is miscounted");
        }
        kept += claim->count;
    }
    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_GPU, &slot);)
        counted += gpu_at(in->engine, slot)->claimed;
    return counted == kept || check_report_broken(in, "gpus", counted, "count room that is not kept");
}

/* The job is leaving its places, to be queued again: those that are kept for it are new. */
static bool
check_is_leaving_for_good(const struct bh_engine *engine, const struct claim *claim)
{
    return claim->at_ns == 0 && bh_gang_all(engine, claim->job, LEASE_STOPPING);
}

static bool
check_claims(struct check_inspection *in)
{
    const struct hints *hints = &in->engine->hints;
    uint32_t count = 0, reserved = 0;
    uint64_t models = 0;

    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = &in->engine->core.claims[i];
        const struct job *job = job_at(in->engine, claim->job);
        bool aside = bh_gang_all(in->engine, claim->job, LEASE_SUSPENDED);
        uint32_t members = aside ? bh_gang_live(in->engine, claim->job) : job->gang;

        if (!claim->job && !check_is_zero(claim, sizeof(*claim)))
            return check_report_broken(in, "claim", i, "free, but not zero");
        if (claim->job
            && ((!job->class && !aside && !check_is_leaving_for_good(in->engine, claim))
                || (uint32_t)job->count * members != claim->count))
            return check_report_broken(in, "claim", i, "kept for a job that does not wait");
        count += claim->job != 0;
        reserved += claim->at_ns != 0;
        if (claim->at_ns == 0)
            continue;
        if (hints->settled && !hints->cut && models >> bh_reserve_model(in->engine, claim) & 1)
            return check_report_broken(in, "claim", i, "a second reservation on one GPU model");
        models |= UINT64_C(1) << bh_reserve_model(in->engine, claim);
    }
    if (reserved != in->engine->core.reserved)
        return check_report_broken(in, "reservations", reserved, "miscounted");
    return count == in->engine->core.claim_count || check_report_broken(in, "claims", count, "miscounted");
}

/* No more was moved in the hour that is counted in than is counted, and no job that must not
 * be. */
static bool
check_moves(struct check_inspection *in)
{
    const struct core *core = &in->engine->core;
    uint32_t moved = 0;

    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_JOB, &slot);) {
        const struct job *job = job_at(in->engine, slot);

        /* to the second: one of the last hour is not to be taken for one of this */
        moved += bh_move_last_ns(job) >= core->moves_began_ns + 1000000000;
        if (bh_move_last_ns(job) >= core->now_ns + 1000000000)
            return check_report_broken(in, "job", job->id, "is moved in the future");
        if (job->moved_s
            && (job->contract == BH_CONTRACT_NEVER || job->contract == BH_CONTRACT_SUSPEND
                || job->deadline_ns))
            return check_report_broken(in, "job", job->id, "was moved, and must not be");
    }
    if (moved > core->moves || (core->moves > 0) != (core->moves_began_ns > 0))
        return check_report_broken(in, "moves", moved, "miscounted");
    return true;
}

/* ---- tenants ---- */

struct check_tally {
    struct bh_wanted used;
    uint32_t running, pending, jobs, children, yielding;
    uint64_t used_own, cost;
    uint64_t quotas[BH_TENANT_QUOTAS_MAX];
};

static void
check_tally_leases(const struct bh_engine *engine, uint32_t slot, struct check_tally *tally)
{
    const struct tenant *tenant = tenant_at(engine, slot);

    for (uint32_t at = 0; bh_slot_next(engine, TABLE_LEASE, &at);) {
        struct bh_wanted held = bh_quota_of_lease(engine, at);

        if (!bh_tenant_within(engine, slot, held.tenant))
            continue;
        tally->used.equivalent += held.equivalent;
        tally->used_own += held.tenant == slot ? held.equivalent : 0;
        tally->cost += sku_at(engine, held.sku)->price * held.count;
        for (uint32_t i = 0; i < tenant->quota_count; i++) {
            const struct quota *quota = &tenant->quotas[i];

            if (quota->scope == BH_QUOTA_MODEL)
                tally->quotas[i] += quota->of == held.model ? held.equivalent : 0;
            else
                tally->quotas[i] += quota->of == sku_at(engine, held.sku)->id ? held.count : 0;
        }
    }
}

static void
check_tally_jobs(const struct bh_engine *engine, uint32_t slot, struct check_tally *tally)
{
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_JOB, &at);) {
        const struct job *job = job_at(engine, at);

        tally->jobs += job->tenant == slot;
        if (job->state >= BH_JOB_COMPLETED || !bh_tenant_within(engine, slot, job->tenant))
            continue;
        tally->running += job->lease != 0;
        tally->yielding += job->lease && job->tenant == slot && job->contract != BH_CONTRACT_NEVER;
        tally->pending += job->lease == 0;
    }
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_TENANT, &at);)
        tally->children += tenant_at(engine, at)->parent == slot;
}

static bool
check_one_tenant(struct check_inspection *in, uint32_t slot)
{
    const struct tenant *tenant = tenant_at(in->engine, slot);
    struct check_tally tally = { 0 };

    check_tally_leases(in->engine, slot, &tally);
    check_tally_jobs(in->engine, slot, &tally);
    for (uint32_t i = 0; i < tenant->quota_count; i++)
        if (tally.quotas[i] != tenant->quotas[i].used)
            return check_report_broken(in, "tenant", tenant->id, "a quota's use is not that of its leases");
    if (tally.used.equivalent != tenant->used || tally.used_own != tenant->used_own
        || tally.cost != tenant->cost)
        return check_report_broken(in, "tenant", tenant->id, "its use is not that of its leases");
    if (tally.jobs != tenant->jobs || tally.running != tenant->running || tally.pending != tenant->pending
        || tally.children != tenant->children)
        return check_report_broken(in, "tenant", tenant->id, "jobs or children miscounted");
    if (!bh_preemptible_check(in->engine, slot, tally.yielding))
        return check_report_broken(in, "tenant", tenant->id, "its list of jobs that may make way is wrong");
    return true;
}

static bool
check_tenants(struct check_inspection *in)
{
    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_TENANT, &slot);) {
        const struct tenant *tenant = tenant_at(in->engine, slot);

        if (!check_one_tenant(in, slot))
            return false;
        if (metered_at(in->engine, tenant->metered)->id != tenant->id)
            return check_report_broken(in, "tenant", tenant->id, "its row of the ledger is another's");
    }
    return true;
}

static bool
check_ledger(struct check_inspection *in)
{
    const char *why = bh_ledger_broken(in->engine);

    return !why || check_report_broken(in, "ledger", 0, why);
}

/* ---- what was decided ---- */

/* When the engine has nothing left to decide, no head of a queue could be placed; in
 * particular no job waits whose guarantee would cover what others were given. */
static bool
check_decided(struct check_inspection *in)
{
    const struct hints *hints = &in->engine->hints;

    if (!hints->settled || hints->cut)
        return true;
    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_CLASS, &slot);) {
        struct bh_need need = bh_placement_need(in->engine, slot);
        struct bh_queue_entry entry;
        struct bh_search search;
        struct bh_plan plan;
        struct bh_reason why;

        if (class_at(in->engine, slot)->hold || bh_claim_of_class(in->engine, slot)
            || bh_usage_exhausted(in->engine, need.tenant, &why))
            continue;
        bh_queue_entry_of_class(in->engine, slot, &entry);
        search = bh_reserve_search(in->engine, &entry, need.job);
        if (!bh_placement_find(&search, &need, &plan, NULL))
            continue;
        return check_report_broken(in, "job", job_at(in->engine, need.job)->id,
                                   "waits, though there is room for it");
    }
    return true;
}

/* Nothing falls due before the engine says so. */
static bool
check_due(struct check_inspection *in)
{
    const struct hints *hints = &in->engine->hints;

    for (uint32_t slot = 0; hints->due_known && bh_slot_next(in->engine, TABLE_LEASE, &slot);)
        if (bh_lease_deadline_ns(in->engine, slot) < hints->due_ns)
            return check_report_broken(in, "lease", lease_at(in->engine, slot)->id, "falls due unnoticed");
    for (uint32_t slot = 0; hints->due_known && bh_slot_next(in->engine, TABLE_GPU, &slot);)
        if (bh_gpu_retry_ns(in->engine, slot) < hints->due_ns
            || bh_health_due_ns(in->engine, slot) < hints->due_ns)
            return check_report_broken(in, "gpu", gpu_at(in->engine, slot)->id, "is due unnoticed");
    if (hints->due_known && bh_warm_retry_ns(in->engine) < hints->due_ns)
        return check_report_broken(in, "partition", hints->due_ns, "are to be carved unnoticed");
    return true;
}

/* A class that a limit holds back and no job's leaving would help is left alone only as long as that
 * is so; and the ends of leases are as they were remembered. */
static bool
check_hints(struct check_inspection *in)
{
    struct work work = { .engine = (struct bh_engine *)(uintptr_t)in->engine };

    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_CLASS, &slot);) {
        struct bh_need need = bh_placement_need(in->engine, slot);
        uint32_t within;

        if (bh_queue_is_blocked(in->engine, slot) && !bh_preempt_in_vain(&work, &need, &within))
            return check_report_broken(in, "job", job_at(in->engine, need.job)->id,
                                       "is passed over, though room could be made");
    }
    for (uint32_t slot = 0; bh_slot_next(in->engine, TABLE_NODE, &slot);)
        if (!bh_reserve_ends_known(in->engine, slot))
            return check_report_broken(in, "node", node_at(in->engine, slot)->id,
                                       "a lease ends at another time than was remembered");
    return true;
}

bool
bh_engine_check(const struct bh_engine *engine, char *ret_broken, size_t size)
{
    struct check_inspection in = { .engine = engine, .text = ret_broken, .size = size };

    return check_tables(&in) && check_demand(&in) && check_gpus(&in) && check_leases(&in)
           && check_all_jobs(&in) && check_claims(&in) && check_reserved(&in) && check_tenants(&in)
           && check_ledger(&in) && check_decided(&in) && check_hints(&in) && check_due(&in)
           && check_shapes(&in) && check_expected(&in) && check_moves(&in) && check_derived(&in);
}
