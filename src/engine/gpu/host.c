#include "engine/gpu/host.h"

#include "base/assert.h"
#include "engine/gpu/dedication.h"
#include "engine/gpu/node_index.h"
#include "engine/state/gang.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"

/* Amounts of cores and memory; negative where more is taken than there is. */
struct host_amounts {
    int64_t cpu_milli, memory_mib;
};

/* Whether members of the job are suspended; others of it may have been resumed just now. */
static bool
host_is_suspended(const struct bh_engine *engine, uint32_t job)
{
    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        if (lease_at(engine, at)->state == LEASE_SUSPENDED)
            return true;
    return false;
}

/* What one member of the job (slot) still has to take to run: one that is suspended is in
 * memory already. */
static struct host_amounts
host_wanted_by(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot);

    return (struct host_amounts){ job->cpu_milli, host_is_suspended(engine, slot) ? 0 : job->memory_mib };
}

/* Whether nothing but the cores would come free: its processes are frozen, not ended. */
static bool
host_stays_in_memory(const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);

    if (search->by_ns && bh_lease_ends_ns(engine, slot) <= search->by_ns)
        return false;
    if (bh_capacity_is_leaving(engine, slot))
        return lease->state == LEASE_SUSPENDING;
    return job->contract == BH_CONTRACT_SUSPEND && bh_gang_all(engine, lease->job, LEASE_RUNNING);
}

/* What jobs give back that are imagined gone.  A lease is met at its first partition. */
static void
host_add_gone(const struct bh_search *search, uint32_t node, struct host_amounts *left)
{
    const struct bh_engine *engine = search->engine;

    if (!search->past_leaving && !search->by_ns && search->gone_count == 0)
        return;
    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at)) {
            uint32_t lease = partition_at(engine, at)->lease;
            const struct job *job = job_at(engine, lease_at(engine, lease)->job);

            if (!lease || lease_at(engine, lease)->parts[0] != at || !bh_capacity_is_gone(search, lease))
                continue;
            left->cpu_milli += job->cpu_milli;
            left->memory_mib += host_stays_in_memory(search, lease) ? 0 : job->memory_mib;
        }
}

/* What the members of a claim's job on the node will take. */
static void
host_charge_claim(const struct bh_engine *engine, const struct claim *claim, uint32_t node,
                  struct host_amounts *left)
{
    struct host_amounts each = host_wanted_by(engine, claim->job);
    uint32_t partitions = 0, members;

    for (uint32_t i = 0; i < claim->count; i++)
        partitions += gpu_at(engine, gpu_find(engine, claim->placements[i].gpu))->node == node;
    members = partitions / job_at(engine, claim->job)->count;
    left->cpu_milli -= each.cpu_milli * members;
    left->memory_mib -= each.memory_mib * members;
}

/* What the members of jobs will take that are imagined there. */
static void
host_charge_taking(const struct bh_search *search, uint32_t node, struct host_amounts *left)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t i = 0, partitions = 0; i < search->taking_count; i++) {
        const struct bh_taking *taking = &search->taking[i];
        struct host_amounts each = host_wanted_by(engine, taking->job);
        bool last = i + 1 == search->taking_count || taking[1].job != taking->job;

        partitions += gpu_at(engine, gpu_find(engine, taking->placement.gpu))->node == node;
        if (!last)
            continue;
        partitions /= job_at(engine, taking->job)->count;
        left->cpu_milli -= each.cpu_milli * partitions;
        left->memory_mib -= each.memory_mib * partitions;
        partitions = 0;
    }
}

static struct host_amounts
host_left_now(const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    const struct node *node = node_at(engine, slot);
    struct host_amounts left = { (int64_t)node->cpu_milli - (int64_t)node->cpu_used,
                                 (int64_t)node->memory_mib - (int64_t)node->memory_used };

    BH_ASSERT(node->cpu_used <= (uint64_t)node->leases << 32
              && node->memory_used <= (uint64_t)node->leases << 32);
    host_add_gone(search, slot, &left);
    host_charge_taking(search, slot, &left);
    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(search, i);

        if (claim && claim->at_ns == 0 && !search->past_claims)
            host_charge_claim(engine, claim, slot, &left);
    }
    return left;
}

/* A job that has capacity beside the present jobs, and beside a reservation when its time has come, has
 * capacity throughout. */
static struct host_amounts
host_left_throughout(const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    struct host_amounts left = host_left_now(search, slot);

    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(search, i);
        struct bh_search then = *search;
        struct host_amounts later;

        if (!claim || claim->at_ns == 0 || search->past_claims)
            continue;
        then.by_ns = claim->at_ns;
        later = host_left_now(&then, slot);
        host_charge_claim(engine, claim, slot, &later);
        left.cpu_milli = later.cpu_milli < left.cpu_milli ? later.cpu_milli : left.cpu_milli;
        left.memory_mib = later.memory_mib < left.memory_mib ? later.memory_mib : left.memory_mib;
    }
    return left;
}

/* How often `each` is in `left`, where the node limits it at all. */
static uint32_t
host_times(int64_t left, int64_t each, uint32_t has)
{
    if (each == 0 || has == 0)
        return UINT32_MAX;
    return left < each ? 0 : (uint32_t)(left / each);
}

static uint32_t
host_members_in(const struct node *node, const struct host_amounts *left, const struct host_amounts *each)
{
    uint32_t by_cores = host_times(left->cpu_milli, each->cpu_milli, node->cpu_milli);
    uint32_t by_memory = host_times(left->memory_mib, each->memory_mib, node->memory_mib);

    return by_cores < by_memory ? by_cores : by_memory;
}

uint32_t
bh_host_capacity(const struct bh_search *search, uint32_t slot)
{
    struct host_amounts each = host_wanted_by(search->engine, search->job), left;

    if ((each.cpu_milli == 0 && each.memory_mib == 0) || search->past_hosts)
        return UINT32_MAX;
    left = host_left_throughout(search, slot);
    return host_members_in(node_at(search->engine, slot), &left, &each);
}

bool
bh_host_lacks_cores(const struct bh_search *search, uint32_t slot)
{
    struct host_amounts each = host_wanted_by(search->engine, search->job);
    struct host_amounts left = host_left_throughout(search, slot);

    return host_times(left.cpu_milli, each.cpu_milli, node_at(search->engine, slot)->cpu_milli) == 0;
}

uint32_t
bh_host_capacity_ever(const struct bh_engine *engine, uint32_t job, uint32_t slot)
{
    const struct node *node = node_at(engine, slot);
    struct host_amounts each = { job_at(engine, job)->cpu_milli, job_at(engine, job)->memory_mib };

    return host_members_in(node, &(struct host_amounts){ node->cpu_milli, node->memory_mib }, &each);
}

static bool
host_has_model(const struct bh_engine *engine, const struct node *node, uint32_t sku)
{
    for (uint32_t row = 0; row < sku_at(engine, sku)->model_count; row++)
        if (node->models >> sku_at(engine, sku)->models[row] & 1)
            return true;
    return false;
}

/* What a submission asks of the nodes, for each member. */
struct host_asked {
    uint32_t cpu_milli, memory_mib, gang;
};

/* The most memory is that of nodes with cores enough: what a node has that lacks cores is no reason. */
static struct bh_reason
host_never(const struct bh_engine *engine, uint32_t sku, const struct host_asked *asked)
{
    uint32_t most_cpu_milli = 0, most_memory_mib = 0;
    uint64_t by_cores = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);) {
        const struct node *node = node_at(engine, slot);
        uint32_t members = host_times(node->cpu_milli, asked->cpu_milli, node->cpu_milli);

        if (!host_has_model(engine, node, sku))
            continue;
        by_cores += members;
        most_cpu_milli = node->cpu_milli > most_cpu_milli ? node->cpu_milli : most_cpu_milli;
        if (members > 0 && node->memory_mib > most_memory_mib)
            most_memory_mib = node->memory_mib;
    }
    if (by_cores < asked->gang)
        return (struct bh_reason){ .code = BH_REASON_NEVER_CORES,
                                   .wanted = asked->cpu_milli,
                                   .limit = most_cpu_milli };
    return (struct bh_reason){ .code = BH_REASON_NEVER_MEMORY,
                               .wanted = asked->memory_mib,
                               .limit = most_memory_mib };
}

struct bh_reason
bh_host_why_never(const struct bh_engine *engine, uint32_t job)
{
    const struct job *of = job_at(engine, job);

    return host_never(engine, of->sku, &(struct host_asked){ of->cpu_milli, of->memory_mib, of->gang });
}

bool
bh_host_accepts_ever(const struct bh_engine *engine, const struct bh_ev_submit *submit,
                     struct bh_reason *ret_why)
{
    struct host_asked asked = { submit->cpu_milli, submit->memory_mib, submit->gang ? submit->gang : 1 };
    struct host_amounts each = { asked.cpu_milli, asked.memory_mib };
    uint32_t sku = sku_find(engine, submit->sku.v);
    bool known = false;
    uint64_t members = 0;

    for (uint32_t slot = 0; sku && members < asked.gang && bh_slot_next(engine, TABLE_NODE, &slot);) {
        const struct node *node = node_at(engine, slot);

        if (!host_has_model(engine, node, sku))
            continue;
        members += host_members_in(node, &(struct host_amounts){ node->cpu_milli, node->memory_mib }, &each);
        known = known || node->cpu_milli || node->memory_mib;
    }
    if (members >= asked.gang || !known)
        return true;
    *ret_why = host_never(engine, sku, &asked);
    return false;
}

/* ---- leases ---- */

bool
bh_host_lasts(const struct job *job)
{
    return job->kind != BH_JOB_BATCH;
}

static struct node *
host_node_of(struct bh_engine *engine, uint32_t lease)
{
    return node_at(engine, lease_at(engine, lease)->node);
}

static const struct job *
host_job_of(const struct bh_engine *engine, uint32_t lease)
{
    return job_at(engine, lease_at(engine, lease)->job);
}

void
bh_host_arrive(struct bh_engine *engine, uint32_t lease)
{
    struct node *node = host_node_of(engine, lease);

    BH_ASSERT(node->id != 0 && host_job_of(engine, lease)->id != 0);
    BH_ASSERT(node->lasting <= node->leases && node->leases < engine->tables[TABLE_LEASE].capacity);
    node->leases++;
    node->lasting += bh_host_lasts(host_job_of(engine, lease));
    node->memory_used += host_job_of(engine, lease)->memory_mib;
    bh_host_return(engine, lease);
    bh_dedication_arrive(engine, lease);
}

void
bh_host_rest(struct bh_engine *engine, uint32_t lease)
{
    struct node *node = host_node_of(engine, lease);

    BH_ASSERT(node->cpu_used >= host_job_of(engine, lease)->cpu_milli);
    BH_ASSERT(node->id != 0 && host_job_of(engine, lease)->id != 0);
    bh_node_index_invalidate(engine, lease_at(engine, lease)->node);
    node->cpu_used -= host_job_of(engine, lease)->cpu_milli;
}

void
bh_host_return(struct bh_engine *engine, uint32_t lease)
{
    BH_ASSERT(lease_at(engine, lease)->id != 0);
    BH_ASSERT(node_at(engine, lease_at(engine, lease)->node)->leases > 0);
    host_node_of(engine, lease)->cpu_used += host_job_of(engine, lease)->cpu_milli;
    bh_node_index_invalidate(engine, lease_at(engine, lease)->node);
}

void
bh_host_leave(struct bh_engine *engine, uint32_t lease)
{
    struct node *node = host_node_of(engine, lease);

    BH_ASSERT(node->leases > 0);
    BH_ASSERT(node->memory_used >= host_job_of(engine, lease)->memory_mib);
    BH_ASSERT(node->lasting >= bh_host_lasts(host_job_of(engine, lease)));
    BH_ASSERT(node->lasting <= node->leases && node->dedicating <= node->leases);
    bh_node_index_invalidate(engine, lease_at(engine, lease)->node);
    node->leases--;
    node->lasting -= bh_host_lasts(host_job_of(engine, lease));
    node->memory_used -= host_job_of(engine, lease)->memory_mib;
    if (lease_at(engine, lease)->parts[0])
        bh_host_rest(engine, lease);
    bh_dedication_leave(engine, lease);
}

/* What the leases take that hold partitions on the node. */
static struct host_amounts
host_held_on(const struct bh_engine *engine, uint32_t node)
{
    struct host_amounts held = { 0, 0 };

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at)) {
            uint32_t lease = partition_at(engine, at)->lease;

            if (!lease || lease_at(engine, lease)->parts[0] != at)
                continue;
            held.cpu_milli += host_job_of(engine, lease)->cpu_milli;
            held.memory_mib += host_job_of(engine, lease)->memory_mib;
        }
    return held;
}

/* A node's memory also holds jobs without partitions: they count in the sum only. */
bool
bh_host_check(const struct bh_engine *engine, uint32_t *ret_node)
{
    uint64_t memory_mib = 0, leases = 0, lasting = 0;

    for (*ret_node = 0; bh_slot_next(engine, TABLE_NODE, ret_node);) {
        const struct node *node = node_at(engine, *ret_node);
        struct host_amounts held = host_held_on(engine, *ret_node);

        if (node->cpu_used != (uint64_t)held.cpu_milli || node->memory_used < (uint64_t)held.memory_mib)
            return false;
        memory_mib += node->memory_used;
        leases += node->leases;
        lasting += node->lasting;
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        bool there = lease_at(engine, slot)->state != LEASE_DONE;

        memory_mib -= there ? host_job_of(engine, slot)->memory_mib : 0;
        leases -= there;
        lasting -= there && bh_host_lasts(host_job_of(engine, slot));
    }
    *ret_node = 0;
    return memory_mib == 0 && leases == 0 && lasting == 0;
}
