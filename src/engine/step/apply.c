#include "engine/step/apply.h"

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/gpu/layout.h"
#include "engine/placement/placement.h"
#include "engine/placement/warm.h"
#include "engine/queue/claim.h"
#include "engine/queue/gang_decide.h"
#include "engine/queue/jobs.h"
#include "engine/queue/lease.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

/* How long a job waits before it makes room again when room did not come free. */
#define COOL_DOWN_NS 10000000000ull

/* Whether a recorded partition can be carved, or lent to the tenant. */
static bool
apply_partition_fits(const struct bh_engine *engine, const struct bh_partition *decided, uint32_t tenant,
                     uint32_t node)
{
    uint32_t gpu = gpu_find(engine, decided->gpu.v);
    const struct partition *partition = partition_at(engine, partition_find(engine, decided->partition.v));

    if (!gpu || gpu_at(engine, gpu)->node != node || decided->partition.v == 0)
        return false;
    if (decided->start > UINT16_MAX)
        return false;
    if (decided->carve)
        return partition->id == 0 && bh_slots_free(engine, TABLE_PARTITION) > 0;
    return partition->id != 0 && partition->state == BH_PARTITION_IDLE && partition->gpu == gpu
           && partition->profile == decided->profile && partition->start == decided->start
           && (partition->tenant == 0 || partition->tenant == tenant_at(engine, tenant)->id);
}

/* Whether a recorded partition is none of those before it in the decision, and the number of one to carve is
 * new: numbers rise, over all that were ever given. */
static bool
apply_partition_is_new(const struct bh_engine *engine, const struct bh_decision *decision, uint32_t at)
{
    const struct bh_partition *decided = &decision->partitions[at];

    if (decided->carve && decided->partition.v < engine->core.next_partition)
        return false;
    for (uint32_t i = 0; i < at; i++)
        if (decision->partitions[i].partition.v == decided->partition.v)
            return false;
    return true;
}

/* Whether all recorded partitions are free, on one node; says which. */
static bool
apply_partitions_fit(const struct bh_engine *engine, uint32_t job, uint32_t tenant,
                     const struct bh_decision *decision, uint32_t *ret_node)
{
    struct bh_search search = { .engine = engine, .tenant = tenant, .job = job, .past_claims = true };
    struct placement placements[BH_JOB_COUNT_MAX];
    uint32_t node = gpu_at(engine, gpu_find(engine, decision->partitions[0].gpu.v))->node;

    if (decision->partition_count == 0 || decision->partition_count > BH_JOB_COUNT_MAX)
        return false;
    for (uint32_t i = 0; i < decision->partition_count; i++) {
        const struct bh_partition *decided = &decision->partitions[i];

        if (!apply_partition_fits(engine, decided, tenant, node)
            || !apply_partition_is_new(engine, decision, i))
            return false;
        placements[i] = (struct placement){ decided->gpu.v, decided->profile, decided->start };
    }
    *ret_node = node;
    return bh_placement_possible(&search, placements, decision->partition_count);
}

/* Idle partitions are lent first, so that carving beside them does not clear them. */
static void
apply_add_partitions(struct work *work, uint32_t lease, const struct bh_decision *decision)
{
    for (uint32_t carve = 0; carve <= 1; carve++)
        for (uint32_t i = 0; i < decision->partition_count; i++)
            if (decision->partitions[i].carve == (carve != 0))
                bh_lease_add_partition(work, lease, i, &decision->partitions[i]);
}

/* Whether the member is the job's next to be placed: the first while the job is queued, then
 * one after the other, with numbers that follow each other. */
static bool
apply_is_next_member(const struct work *work, uint32_t job_slot, const struct bh_decision *decision)
{
    const struct bh_engine *engine = work->engine;
    const struct job *job = job_at(engine, job_slot);

    if (work->rest.members == 0)
        return job->class && !job->hold && decision->member == 0
               && decision->lease.v >= engine->core.next_lease;
    return decision->member == job->gang - work->rest.members
           && decision->lease.v == lease_at(engine, job->lease)->id + decision->member;
}

static bh_rc
apply_place(struct work *work, const struct bh_decision *decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t job_slot = job_find(engine, decision->job.v), node = 0, lease;
    const struct job *job = job_at(engine, job_slot);
    struct bh_wanted held;

    if (!job_slot || !apply_is_next_member(work, job_slot, decision)
        || job->count != decision->partition_count || bh_slots_free(engine, TABLE_LEASE) == 0)
        return BH_CONFLICT;
    if (!apply_partitions_fit(engine, job_slot, job->tenant, decision, &node))
        return BH_CONFLICT;
    lease = bh_lease_create(work, decision, job_slot, node);
    apply_add_partitions(work, lease, decision);
    held = bh_quota_of_lease(engine, lease);
    bh_quota_charge(engine, &held);
    bh_wake_after_taking(engine, job->tenant);
    bh_gang_decision_applied(work, decision, job->gang);
    if (work->rest.members == 0)
        bh_lease_proceed(work, job_slot);
    return BH_OK;
}

static bool
apply_same_places(const struct lease *lease, const struct bh_decision *decision)
{
    if (lease->count != decision->partition_count)
        return false;
    for (uint32_t i = 0; i < lease->count; i++)
        if (lease->placements[i].gpu != decision->partitions[i].gpu.v
            || lease->placements[i].profile != decision->partitions[i].profile
            || lease->placements[i].start != decision->partitions[i].start)
            return false;
    return true;
}

static bh_rc
apply_resume(struct work *work, const struct bh_decision *decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t slot = lease_find(engine, decision->lease.v), node = 0;
    const struct lease *lease = lease_at(engine, slot);

    if (!slot || !bh_lease_allows(engine, slot, LEASE_RESUME) || !apply_same_places(lease, decision)
        || job_at(engine, lease->job)->id != decision->job.v
        || (work->rest.members == 0 && !bh_gang_leads_suspended(engine, slot)))
        return BH_CONFLICT;
    if (!apply_partitions_fit(engine, lease->job, lease->tenant, decision, &node) || node != lease->node)
        return BH_CONFLICT;
    apply_add_partitions(work, slot, decision);
    bh_lease_step(work, slot, &(struct lease_change){ .event = LEASE_RESUME });
    bh_gang_decision_applied(work, decision, bh_gang_live(engine, lease->job));
    if (work->rest.members == 0)
        bh_lease_proceed(work, lease->job);
    return BH_OK;
}

static bh_rc
apply_suspend(struct work *work, const struct bh_decision *decision)
{
    uint32_t slot = lease_find(work->engine, decision->lease.v);
    uint32_t job = lease_at(work->engine, slot)->job;
    struct lease_change change = { .event = LEASE_SUSPEND, .for_job = decision->for_job.v };

    if (!slot || !bh_lease_all_allow(work->engine, job, LEASE_SUSPEND))
        return BH_CONFLICT;
    bh_lease_step_all(work, job, &change);
    return BH_OK;
}

static bh_rc
apply_stop(struct work *work, const struct bh_decision *decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t slot = lease_find(engine, decision->lease.v);
    uint32_t job = job_find(engine, decision->job.v);
    struct lease_change change = { .event = LEASE_STOP,
                                   .cause = decision->cause,
                                   .for_job = decision->for_job.v };

    if ((uint32_t)decision->cause >= BH_END_CAUSES)
        return BH_CONFLICT;
    if (decision->lease.v == 0) {
        if (!job || !job_at(engine, job)->class)
            return BH_CONFLICT;
        bh_job_end(work, job, decision->cause == BH_END_DEADLINE ? BH_JOB_FAILED : BH_JOB_CANCELLED,
                   decision->cause, 0);
        return BH_OK;
    }
    if (!slot || lease_at(engine, slot)->job != job || !bh_lease_all_allow(engine, job, LEASE_STOP))
        return BH_CONFLICT;
    bh_lease_step_all(work, job, &change);
    return BH_OK;
}

/* Room is made for jobs that wait for it, queued or suspended. */
static bool
apply_may_claim(const struct bh_engine *engine, uint32_t slot)
{
    return job_at(engine, slot)->class || bh_gang_all(engine, slot, LEASE_SUSPENDED);
}

/* The claim or reservation of which the decision is a part: a new one for the first member. */
static struct claim *
apply_claim_for(struct work *work, uint32_t job, bool reserved)
{
    struct bh_engine *engine = work->engine;
    struct claim *claim = bh_claim_of(engine, job), *kept = bh_claim_reserved(engine, job);

    if (work->rest.members > 0)
        return reserved ? kept : claim;
    if (claim)
        return NULL;
    if (kept)
        bh_claim_drop(engine, kept);
    for (uint32_t i = 0; i < CLAIMS_MAX; i++)
        if (engine->core.claims[i].job == 0)
            return &engine->core.claims[i];
    return NULL;
}

/* Whether the partitions stand on GPUs that there are. */
static bool
apply_places_known(const struct bh_engine *engine, const struct bh_decision *decision)
{
    for (uint32_t i = 0; i < decision->partition_count; i++)
        if (!gpu_find(engine, decision->partitions[i].gpu.v))
            return false;
    return decision->partition_count > 0 && decision->partition_count <= BH_JOB_COUNT_MAX;
}

static void
apply_add_places(struct bh_engine *engine, struct claim *claim, const struct bh_decision *decision)
{
    for (uint32_t i = 0; i < decision->partition_count; i++) {
        const struct bh_partition *decided = &decision->partitions[i];

        claim->placements[claim->count++] =
            (struct placement){ decided->gpu.v, decided->profile, decided->start };
        claim->equivalent += bh_quota_equivalent(decided->profile, 1);
        gpu_at(engine, gpu_find(engine, decided->gpu.v))->claimed++;
    }
}

/* Keep the room that a decision names for a member, as a claim or a reservation. */
static bh_rc
apply_reserve_capacity(struct work *work, const struct bh_decision *decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t job = job_find(engine, decision->job.v), members;
    struct claim *claim;

    if (!job || !apply_may_claim(engine, job) || decision->partition_count != job_at(engine, job)->count
        || !apply_places_known(engine, decision))
        return BH_CONFLICT;
    claim = apply_claim_for(work, job, decision->at_ns != 0);
    if (!claim || (work->rest.members > 0 && claim->at_ns != decision->at_ns))
        return BH_CONFLICT;
    members = job_at(engine, job)->lease ? bh_gang_live(engine, job) : job_at(engine, job)->gang;
    if (claim->job == 0) {
        claim->job = job;
        claim->at_ns = decision->at_ns;
        bh_wake_below(engine, job_at(engine, job)->tenant);
        engine->core.claim_count++;
        engine->core.reserved += claim->at_ns != 0;
    }
    apply_add_places(engine, claim, decision);
    bh_gang_decision_applied(work, decision, members);
    return BH_OK;
}

static bh_rc
apply_claim(struct work *work, const struct bh_decision *decision)
{
    struct core *core = &work->engine->core;
    bool first = work->rest.members == 0;
    bh_rc rc = decision->at_ns ? BH_CONFLICT : apply_reserve_capacity(work, decision);
    struct job *job;

    if (rc != BH_OK || !first)
        return rc;
    job = job_at(work->engine, job_find(work->engine, decision->job.v));
    job->claims = job->claims_window == core->window ? (uint8_t)(job->claims + 1) : 1;
    job->claims_window = core->window;
    bh_wake_queue(work->engine);
    return BH_OK;
}

static bh_rc
apply_reserve(struct work *work, const struct bh_decision *decision)
{
    return decision->at_ns ? apply_reserve_capacity(work, decision) : BH_CONFLICT;
}

static bh_rc
apply_unreserve(struct work *work, const struct bh_decision *decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t job = job_find(engine, decision->job.v);

    if (!job || !bh_claim_reserved(engine, job))
        return BH_CONFLICT;
    bh_claim_drop(engine, bh_claim_reserved(engine, job));
    return BH_OK;
}

static bh_rc
apply_unclaim(struct work *work, const struct bh_decision *decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t job = job_find(engine, decision->job.v);

    if (!job || !bh_claim_of(engine, job))
        return BH_CONFLICT;
    bh_claim_drop(engine, bh_claim_of(engine, job));
    job_at(engine, job)->preempt_after_ns = work->now_ns + COOL_DOWN_NS;
    return BH_OK;
}

bh_rc
bh_apply(struct work *work, const struct bh_decision *decision)
{
    static bh_rc (*const apply[BH_DECISION_KINDS])(struct work *, const struct bh_decision *) = {
        [BH_DO_PLACE] = apply_place,     [BH_DO_RESUME] = apply_resume,       [BH_DO_SUSPEND] = apply_suspend,
        [BH_DO_STOP] = apply_stop,       [BH_DO_CLAIM] = apply_claim,         [BH_DO_UNCLAIM] = apply_unclaim,
        [BH_DO_RESERVE] = apply_reserve, [BH_DO_UNRESERVE] = apply_unreserve, [BH_DO_WARM] = bh_warm_apply,
        [BH_DO_CLEAR] = bh_layout_clear,
    };

    if ((uint32_t)decision->kind >= BH_DECISION_KINDS || !bh_gang_follows(work, decision))
        return BH_CONFLICT;
    return apply[decision->kind](work, decision);
}
