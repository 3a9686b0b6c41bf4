#include "engine/gpu/capacity.h"

#include "base/assert.h"
#include "base/attr.h"
#include "engine/account/separation.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"

bool
bh_capacity_is_healthy(const struct gpu *gpu)
{
    return gpu->health.state == BH_HEALTH_OK || gpu->health.state == BH_HEALTH_WATCHED;
}

bool
bh_capacity_offered(const struct bh_engine *engine, const struct gpu *gpu)
{
    const struct node *node = node_at(engine, gpu->node);

    BH_ASSERT(node->models >> gpu->model & 1 && node->reboots <= node->gpu_count);
    BH_ASSERT((gpu->held | node->held | gpu->fenced) < 4 && (node->up | node->unchecked) < 2);
    BH_ASSERT(gpu->health.state < BH_HEALTHS);
    return gpu->managed && !gpu->cordoned && !gpu->fenced && node->up && !gpu->held && !node->held
           && node->reboots == 0 && !node->unchecked && bh_capacity_is_healthy(gpu);
}

const struct claim *
bh_capacity_claim(const struct bh_search *search, uint32_t index)
{
    const struct claim *claim = &search->engine->core.claims[index];

    BH_ASSERT(index < CLAIMS_MAX);
    if (!claim->job || claim->job == search->job || search->past >> index & 1)
        return NULL;
    return claim;
}

bool
bh_capacity_claims_bind(const struct bh_search *search)
{
    const struct core *core = &search->engine->core;
    bool own = false;

    if (search->past_claims || core->reserved > 0)
        return false;
    for (uint32_t i = 0; core->claim_count && i < CLAIMS_MAX && !own; i++)
        own = core->claims[i].job && core->claims[i].job == search->job;
    return !own;
}

bool
bh_capacity_is_leaving(const struct bh_engine *engine, uint32_t slot)
{
    uint8_t state = lease_at(engine, slot)->state;

    return state == LEASE_SUSPENDING || state == LEASE_STOPPING;
}

/* Whether it leaves or ends by itself. */
static bool
capacity_goes_anyway(const struct bh_search *search, uint32_t slot)
{
    if ((search->past_leaving || search->by_ns) && bh_capacity_is_leaving(search->engine, slot))
        return true;
    if (search->by_ns && lease_at(search->engine, slot)->state != LEASE_SUSPENDED
        && bh_lease_ends_ns(search->engine, slot) <= search->by_ns)
        return true;
    return false;
}

bool
bh_capacity_is_gone(const struct bh_search *search, uint32_t slot)
{
    if (capacity_goes_anyway(search, slot))
        return true;
    for (uint32_t i = 0; i < search->gone_count; i++)
        if (search->gone[i] == lease_at(search->engine, slot)->job)
            return true;
    return false;
}

void
bh_capacity_block(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile, uint32_t start)
{
    bh_partition_block(occupancy, model, profile, start);
}

/* Slots of the GPU that suspended leases will want again. */
static uint32_t
capacity_slots_of_suspended(const struct bh_engine *engine, uint64_t gpu_id)
{
    uint32_t slots = 0;

    for (uint32_t at = 0; engine->core.suspended && bh_slot_next(engine, TABLE_LEASE, &at);) {
        const struct lease *lease = lease_at(engine, at);

        for (uint32_t i = 0; lease->state == LEASE_SUSPENDED && i < lease->count; i++)
            if (lease->placements[i].gpu == gpu_id && lease->placements[i].start < BH_GPU_SHARES_MAX)
                slots |= UINT32_C(1) << lease->placements[i].start;
    }
    return slots;
}

uint32_t
bh_capacity_slot(const struct bh_engine *engine, uint32_t slot, uint32_t slots)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    uint32_t quiet = slots & ~capacity_slots_of_suspended(engine, gpu->id);

    BH_ASSERT(slots != 0);
    for (uint32_t at = gpu->idle ? gpu->first_partition : 0; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->state == BH_PARTITION_IDLE
            && partition_at(engine, at)->start < BH_GPU_SHARES_MAX)
            quiet &= ~(UINT32_C(1) << partition_at(engine, at)->start);
    return (uint32_t)__builtin_ctz(quiet ? quiet : slots);
}

uint32_t
bh_capacity_starts(const struct bh_search *search, uint32_t slot, uint32_t profile,
                   const struct placement *taken, uint32_t count)
{
    struct bh_occupancy occupancy;
    uint32_t free_slots;

    if (!bh_profile_is_share((bh_profile_id){ profile }))
        return bh_partition_starts(profile);
    bh_capacity_occupancy(search, slot, &occupancy);
    free_slots = ~occupancy.shares;
    for (uint32_t i = 0; i < count; i++)
        if (taken[i].gpu == gpu_at(search->engine, slot)->id && taken[i].start < BH_GPU_SHARES_MAX)
            free_slots &= ~(UINT32_C(1) << taken[i].start);
    return free_slots ? UINT32_C(1) << bh_capacity_slot(search->engine, slot, free_slots) : 1;
}

bool
bh_capacity_accepts(const struct gpu *gpu, uint32_t profile)
{
    if (bh_profile_is_share((bh_profile_id){ profile }))
        return gpu->share_limit > 0 && !gpu->wanted.mode;
    return gpu->mig_capable || profile == BH_PROFILE_WHOLE.v;
}

bool
bh_capacity_overlaps(const struct partition *partition, uint32_t profile, uint32_t start)
{
    return bh_partition_overlaps(partition->profile, partition->start, profile, start);
}

bool
bh_capacity_is_futile(const struct bh_engine *engine, uint32_t gpu)
{
    return gpu_at(engine, gpu)->health.reset_due;
}

static bool
capacity_is_emptied(const struct bh_search *search, uint32_t gpu, uint32_t job)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at)) {
        uint32_t lease = partition_at(engine, at)->lease;

        if (lease && lease_at(engine, lease)->job != job && !bh_capacity_is_gone(search, lease))
            return false;
    }
    return true;
}

bool
bh_capacity_empties(const struct bh_search *search, const struct placement *placements, uint32_t count,
                    uint32_t job)
{
    if (search->engine->core.to_service == 0) /* it counts those that are due */
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t gpu = gpu_find(search->engine, placements[i].gpu);

        if (bh_capacity_is_futile(search->engine, gpu) && capacity_is_emptied(search, gpu, job))
            return true;
    }
    return false;
}

/* Whether the partition no longer counts in what is imagined. */
static bool
capacity_is_past(const struct bh_search *search, const struct gpu *gpu, const struct partition *partition)
{
    if (!partition->lease)
        return false;
    return gpu->health.reset_due ? capacity_goes_anyway(search, partition->lease)
                                 : bh_capacity_is_gone(search, partition->lease);
}

static bool
capacity_counts(const struct partition *partition)
{
    return partition->state == BH_PARTITION_CARVING || partition->state == BH_PARTITION_LEASED;
}

/* The occupancy from its partitions, when some are imagined away or stuck. */
static void
capacity_rebuild(const struct bh_search *search, const struct gpu *gpu, struct bh_occupancy *ret_occupancy)
{
    enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;

    *ret_occupancy = (struct bh_occupancy){ .share_limit = gpu->occupancy.share_limit };
    for (uint32_t at = gpu->first_partition; at;) {
        const struct partition *partition = partition_at(search->engine, at);

        at = partition->next_on_gpu;
        if (!partition->stuck && (!capacity_counts(partition) || capacity_is_past(search, gpu, partition)))
            continue;
        if (!partition->stuck
            && bh_partition_fits(ret_occupancy, model, partition->profile, partition->start))
            bh_partition_add(ret_occupancy, model, partition->profile, partition->start);
        else
            bh_partition_block(ret_occupancy, model, partition->profile, partition->start);
    }
}

/* How many places the claim has on the GPU; they count as taken. */
static uint32_t
capacity_block_claim(const struct claim *claim, const struct gpu *gpu, struct bh_occupancy *occupancy)
{
    uint32_t found = 0;

    for (uint32_t k = 0; k < claim->count && found < gpu->claimed; k++) {
        if (claim->placements[k].gpu != gpu->id)
            continue;
        bh_capacity_block(occupancy, (enum bh_gpu_model)gpu->model, claim->placements[k].profile,
                          claim->placements[k].start);
        found++;
    }
    return found;
}

/* Nothing fits on a GPU that is taken whole, but for shares: no more is looked at. */
static void
capacity_block_claims(const struct bh_search *search, const struct gpu *gpu, struct bh_occupancy *occupancy)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < CLAIMS_MAX && found < gpu->claimed; i++) {
        const struct claim *claim = bh_capacity_claim(search, i);

        if (occupancy->whole && !occupancy->shared)
            return;
        if (claim && claim->at_ns == 0)
            found += capacity_block_claim(claim, gpu, occupancy);
    }
}

static uint32_t
capacity_higher(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The shares of both; where one has another partition, the sum takes none. */
static void
capacity_add_shares(struct bh_occupancy *occupancy, const struct bh_occupancy *later)
{
    bool taken = (occupancy->whole && !occupancy->shared) || (later->whole && !later->shared);

    occupancy->shared = !taken && (occupancy->shared || later->shared);
    occupancy->shares |= later->shares;
    occupancy->share_compute = capacity_higher(occupancy->share_compute, later->share_compute);
    occupancy->share_memory = capacity_higher(occupancy->share_memory, later->share_memory);
}

/* What stands there now and what will when a reservation's time has come: what fits
 * beside the sum fits beside either. */
static void
capacity_block_reservation(const struct bh_search *search, const struct gpu *gpu, const struct claim *claim,
                           struct bh_occupancy *occupancy)
{
    struct bh_search then = *search;
    struct bh_occupancy later = { 0 };

    if (capacity_block_claim(claim, gpu, &later) == 0)
        return;
    then.by_ns = claim->at_ns;
    capacity_rebuild(&then, gpu, &later);
    capacity_block_claims(search, gpu, &later);
    capacity_block_claim(claim, gpu, &later);
    capacity_add_shares(occupancy, &later);
    occupancy->units |= later.units;
    occupancy->slices = later.slices > occupancy->slices ? later.slices : occupancy->slices;
    occupancy->whole = occupancy->whole || later.whole;
    occupancy->media = occupancy->media || later.media;
    for (uint32_t i = 0; i < BH_COUNT(later.counts); i++)
        if (later.counts[i] > occupancy->counts[i])
            occupancy->counts[i] = later.counts[i];
}

static void
capacity_block_reservations(const struct bh_search *search, const struct gpu *gpu,
                            struct bh_occupancy *occupancy)
{
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(search, i);

        if (claim && claim->at_ns)
            capacity_block_reservation(search, gpu, claim, occupancy);
    }
}

static void
capacity_block_taking(const struct bh_search *search, const struct gpu *gpu, struct bh_occupancy *occupancy)
{
    for (uint32_t i = 0; i < search->taking_count; i++)
        if (search->taking[i].placement.gpu == gpu->id)
            bh_capacity_block(occupancy, (enum bh_gpu_model)gpu->model, search->taking[i].placement.profile,
                              search->taking[i].placement.start);
}

static bool
capacity_is_alike(const struct bh_occupancy *a, const struct bh_occupancy *b)
{
    return a->units == b->units && a->slices == b->slices && a->whole == b->whole;
}

void
bh_capacity_occupancy(const struct bh_search *search, uint32_t slot, struct bh_occupancy *ret_occupancy)
{
    const struct gpu *gpu = gpu_at(search->engine, slot);

    BH_ASSERT(gpu->id != 0 && gpu->stuck <= search->engine->tables[TABLE_PARTITION].live);
    BH_ASSERT(!gpu->pooled || capacity_is_alike(&gpu->pooled_as, &gpu->occupancy));
    if (gpu->stuck || search->gone_count || search->past_leaving || search->by_ns)
        capacity_rebuild(search, gpu, ret_occupancy);
    else
        *ret_occupancy = gpu->occupancy;
    if (gpu->claimed && !search->past_claims)
        capacity_block_claims(search, gpu, ret_occupancy);
    if (gpu->claimed && search->engine->core.reserved && !search->past_claims)
        capacity_block_reservations(search, gpu, ret_occupancy);
    capacity_block_taking(search, gpu, ret_occupancy);
}

enum bh_grade
bh_capacity_grade(const struct bh_engine *engine, uint32_t tenant, uint32_t profile)
{
    if (bh_profile_is_share((bh_profile_id){ profile }))
        return BH_GRADE_F;
    if (bh_separation_dedicated(engine, tenant))
        return BH_GRADE_A;
    return profile == BH_PROFILE_WHOLE.v ? BH_GRADE_B : BH_GRADE_C;
}

/* ---- neighbors ---- */

/* `theirs`: the profile of what stands there. */
static bool
capacity_may_share(const struct bh_engine *engine, uint32_t a, uint32_t b, uint32_t profile, uint32_t theirs)
{
    enum bh_grade grade = profile == BH_PROFILE_WHOLE.v ? BH_GRADE_B : BH_GRADE_C;
    enum bh_boundary boundary;

    if (a == b)
        return true;
    if (bh_profile_is_share((bh_profile_id){ profile }))
        grade = BH_GRADE_F;
    boundary = bh_separation_between(engine, a, b).boundary;
    if (boundary > BH_BOUNDARY_NONE
        && (bh_share_is_multiplexed((bh_profile_id){ profile })
            || bh_share_is_multiplexed((bh_profile_id){ theirs })))
        return false;
    return bh_grade_meets(grade, bh_boundary_grade(boundary));
}

static bool
capacity_beside_claims(const struct bh_search *search, uint64_t gpu_id, uint32_t profile,
                       uint32_t *ret_neighbor)
{
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(search, i);

        for (uint32_t k = 0; claim && k < claim->count; k++) {
            if (claim->placements[k].gpu != gpu_id
                || capacity_may_share(search->engine, search->tenant,
                                      job_at(search->engine, claim->job)->tenant, profile,
                                      claim->placements[k].profile))
                continue;
            *ret_neighbor = claim->job;
            return false;
        }
    }
    return true;
}

/* As capacity_beside_claims, for jobs that are imagined there. */
static bool
capacity_beside_taking(const struct bh_search *search, uint64_t gpu_id, uint32_t profile,
                       uint32_t *ret_neighbor)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t i = 0; i < search->taking_count; i++) {
        const struct bh_taking *taking = &search->taking[i];

        if (taking->placement.gpu != gpu_id
            || capacity_may_share(engine, search->tenant, job_at(engine, taking->job)->tenant, profile,
                                  taking->placement.profile))
            continue;
        *ret_neighbor = taking->job;
        return false;
    }
    return true;
}

bool
bh_capacity_beside(const struct bh_search *search, uint32_t slot, uint32_t profile, uint32_t *ret_neighbor)
{
    const struct bh_engine *engine = search->engine;
    const struct gpu *gpu = gpu_at(engine, slot);
    uint32_t known = search->tenant;

    for (uint32_t at = gpu->first_partition; at;) {
        const struct partition *partition = partition_at(engine, at);
        const struct lease *lease = lease_at(engine, partition->lease);

        at = partition->next_on_gpu;
        if (!partition->lease || capacity_is_past(search, gpu, partition)
            || (lease->tenant == known && !bh_share_is_multiplexed((bh_profile_id){ partition->profile })))
            continue;
        if (!capacity_may_share(engine, search->tenant, lease->tenant, profile, partition->profile)) {
            *ret_neighbor = lease->job;
            return false;
        }
        known = lease->tenant;
    }
    if (gpu->claimed && !search->past_claims
        && !capacity_beside_claims(search, gpu->id, profile, ret_neighbor))
        return false;
    return capacity_beside_taking(search, gpu->id, profile, ret_neighbor);
}

static bool
capacity_keeps_away(const struct bh_search *search, uint32_t tenant)
{
    return tenant != search->tenant
           && bh_separation_between(search->engine, search->tenant, tenant).dedicated;
}

static bool
capacity_is_claimed(const struct bh_engine *engine, const struct claim *claim, uint32_t node)
{
    for (uint32_t i = 0; i < claim->count; i++)
        if (gpu_at(engine, gpu_find(engine, claim->placements[i].gpu))->node == node)
            return true;
    return false;
}

/* Capacity on the node that is reserved for jobs that want no neighbor, or that must not be near this one. */
static bool
capacity_apart_from_claims(const struct bh_search *search, uint32_t node, uint32_t *ret_neighbor)
{
    const struct bh_engine *engine = search->engine;

    if (engine->core.claim_count == 0 || search->past_claims)
        return true;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(search, i);

        if (!claim || !capacity_keeps_away(search, job_at(engine, claim->job)->tenant)
            || !capacity_is_claimed(engine, claim, node))
            continue;
        *ret_neighbor = claim->job;
        return false;
    }
    return true;
}

/* As capacity_apart_from_claims, for jobs that are imagined there. */
static bool
capacity_apart_from_taking(const struct bh_search *search, uint32_t node, uint32_t *ret_neighbor)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t i = 0; i < search->taking_count; i++) {
        const struct bh_taking *taking = &search->taking[i];

        if (gpu_at(engine, gpu_find(engine, taking->placement.gpu))->node != node
            || !capacity_keeps_away(search, job_at(engine, taking->job)->tenant))
            continue;
        *ret_neighbor = taking->job;
        return false;
    }
    return true;
}

bool
bh_capacity_on_node(const struct bh_search *search, uint32_t node, uint32_t *ret_neighbor)
{
    const struct bh_engine *engine = search->engine;

    if (search->excluded_node && search->excluded_node == node)
        return false;
    if (engine->core.dedicated == 0)
        return true;
    if (!capacity_apart_from_claims(search, node, ret_neighbor)
        || !capacity_apart_from_taking(search, node, ret_neighbor))
        return false;
    if (node_at(engine, node)->leases == 0)
        return true;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);

        if (lease->node != node || lease->state == LEASE_DONE || !capacity_keeps_away(search, lease->tenant)
            || bh_capacity_is_gone(search, slot))
            continue;
        *ret_neighbor = lease->job;
        return false;
    }
    return true;
}

bool
bh_capacity_lease_apart(const struct bh_engine *engine, uint32_t slot, struct bh_reason *ret_why)
{
    const struct lease *lease = lease_at(engine, slot);
    struct bh_search search = { .engine = engine,
                                .tenant = lease->tenant,
                                .job = lease->job,
                                .past_claims = true,
                                .gone_count = 1,
                                .gone = { lease->job } };
    uint32_t beside = 0;

    *ret_why = (struct bh_reason){ .code = BH_REASON_BOUNDARY };
    for (uint32_t i = 0; i < lease->count; i++) {
        const struct partition *partition = partition_at(engine, lease->parts[i]);

        if (!lease->parts[i] || bh_capacity_beside(&search, partition->gpu, partition->profile, &beside))
            continue;
        ret_why->gpu.v = (uint32_t)gpu_at(engine, partition->gpu)->id;
        ret_why->job.v = job_at(engine, beside)->id;
        return false;
    }
    if (lease->state == LEASE_DONE || bh_capacity_on_node(&search, lease->node, &beside))
        return true;
    ret_why->job.v = job_at(engine, beside)->id;
    return false;
}
