#include "engine/preempt/victim.h"

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/account/separation.h"
#include "engine/account/tenant.h"
#include "engine/queue/preemptible.h"
#include "engine/state/gang.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"

/* ---- the asker ---- */

void
bh_preemptor_init(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t job,
                  const struct bh_wanted *wanted)
{
    const struct bh_engine *engine = search->engine;

    *preemptor = (struct bh_preemptor){
        .wanted = *wanted,
        .job = job,
        .priority = job_at(engine, job)->priority,
    };
    preemptor->cover = bh_guarantee_cover_with_claims(engine, wanted, job, &preemptor->within);
    BH_ASSERT(search->gone_count == 0);
}

/* Whether a job of a class below that may make way. */
static bool
victim_anybody_below(const struct bh_engine *engine, uint32_t priority)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < priority; i++)
        count += engine->core.preemptible_jobs[i];
    return count > 0;
}

bool
bh_preemptor_any_victim(const struct bh_engine *engine)
{
    return victim_anybody_below(engine, BH_PRIORITIES);
}

bool
bh_preemptor_may(const struct bh_preemptor *preemptor, const struct bh_engine *engine)
{
    return victim_anybody_below(engine, preemptor->cover ? BH_PRIORITIES : preemptor->priority);
}

/* ---- sides of the tree ---- */

/* What the subtree uses in what is imagined. */
static uint64_t
victim_used_within(const struct bh_search *search, uint32_t tenant)
{
    struct bh_filter filter = { .tenant = tenant };

    return tenant_at(search->engine, tenant)->used - bh_filter_freed(search, &filter);
}

/* Whether a guarantee covers the asker that it does not share with the tenant. */
static bool
victim_is_owed(const struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t tenant)
{
    const struct bh_engine *engine = search->engine;

    if (preemptor->cover == BH_COVER_NONE
        || (preemptor->within && !bh_tenant_within(engine, preemptor->within, tenant)))
        return false;
    for (uint32_t at = search->tenant; at; at = tenant_at(engine, at)->parent)
        if (!bh_tenant_within(engine, at, tenant) && bh_guarantee_concerns(engine, at, &preemptor->wanted))
            return true;
    return false;
}

/* What the tenant's own jobs use, without those below it. */
static uint64_t
victim_used_by_itself(const struct bh_search *search, uint32_t tenant)
{
    const struct bh_engine *engine = search->engine;
    uint64_t used = victim_used_within(search, tenant);

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);)
        if (tenant_at(engine, slot)->parent == tenant)
            used -= victim_used_within(search, slot);
    return used;
}

/* How far the tenant's side, below what it has in common with the asker, is beyond what it
 * is guaranteed. */
static uint64_t
victim_owed_by(const struct bh_search *search, uint32_t tenant)
{
    const struct bh_engine *engine = search->engine;
    uint64_t most = 0;

    if (tenant != search->tenant && bh_tenant_within(engine, tenant, search->tenant))
        return victim_used_by_itself(search, tenant);
    for (uint32_t at = tenant; at; at = tenant_at(engine, at)->parent) {
        uint64_t used, guarantee = tenant_at(engine, at)->guarantee;

        if (bh_tenant_within(engine, at, search->tenant))
            break;
        used = victim_used_within(search, at);
        if (used > guarantee && used - guarantee > most)
            most = used - guarantee;
    }
    return most;
}

/* Of what is owed, what is taken first: a tenant above the asker may be guaranteed more than all
 * below it together, and what its own jobs use of that they would take back from others. */
static uint64_t
victim_first_of(const struct bh_search *search, uint32_t tenant, uint64_t owed)
{
    const struct bh_engine *engine = search->engine;
    uint64_t left = tenant_at(engine, tenant)->guarantee;

    if (tenant == search->tenant || !bh_tenant_within(engine, tenant, search->tenant))
        return owed;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        uint64_t guarantee = tenant_at(engine, slot)->guarantee;

        if (tenant_at(engine, slot)->parent == tenant)
            left -= guarantee < left ? guarantee : left;
    }
    return owed > left ? owed - left : 0;
}

static uint64_t
victim_min_runtime_ns(const struct bh_search *search, uint32_t tenant)
{
    const struct bh_engine *engine = search->engine;
    uint64_t promised_ns = 0;

    if (bh_tenant_within(engine, tenant, search->tenant))
        promised_ns = tenant_at(engine, tenant)->min_runtime_ns;
    for (uint32_t at = tenant; at && !bh_tenant_within(engine, at, search->tenant);
         at = tenant_at(engine, at)->parent)
        if (tenant_at(engine, at)->min_runtime_ns)
            promised_ns = tenant_at(engine, at)->min_runtime_ns;
    return promised_ns ? promised_ns : engine->core.settings.min_runtime_ns;
}

/* The model of the GPUs that the job's leases are, or were, on. */
static uint32_t
victim_model_of(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, job_at(engine, slot)->lease);
    uint32_t gpu = lease->parts[0] ? partition_at(engine, lease->parts[0])->gpu
                                   : gpu_find(engine, lease->placements[0].gpu);

    return gpu_at(engine, gpu)->model;
}

/* Kept for each tenant, SKU and model. */
static struct bh_side *
victim_side_of(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    const struct job *job = job_at(engine, slot);
    uint32_t model = victim_model_of(engine, slot);
    struct bh_side *side = &preemptor->sides[(job->tenant * 31 + job->sku * 7 + model) % BH_SIDES];

    if (side->tenant == job->tenant && side->sku == job->sku && side->model == model)
        return side;
    *side = (struct bh_side){ .tenant = job->tenant,
                              .sku = job->sku,
                              .model = model,
                              .min_runtime_ns = victim_min_runtime_ns(search, job->tenant) };
    return side;
}

/* The same with what guarantees say, worked out once with none gone. */
static const struct bh_side *
victim_judge_side(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t slot)
{
    struct bh_side *side = victim_side_of(preemptor, search, slot);
    struct bh_search base;

    if (side->judged)
        return side;
    base = *search;
    base.gone_count = 0;
    side->guarded = bh_quota_protects(&base, slot);
    if (victim_is_owed(preemptor, &base, side->tenant))
        side->owed = victim_owed_by(&base, side->tenant);
    side->first = victim_first_of(&base, side->tenant, side->owed);
    side->judged = true;
    return side;
}

/* ---- victims ---- */

/* Whether all of it starts or runs; when the last member began. */
static bool
victim_is_there(const struct bh_engine *engine, uint32_t job, bool *ret_running, uint64_t *ret_since_ns)
{
    bool any = false;

    *ret_running = true;
    *ret_since_ns = 0;
    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0; any = true) {
        const struct lease *lease = lease_at(engine, at);

        if (lease->state != LEASE_RUNNING && lease->state != LEASE_STARTING)
            return false;
        *ret_running = *ret_running && lease->state == LEASE_RUNNING;
        if (lease->since_ns > *ret_since_ns)
            *ret_since_ns = lease->since_ns;
    }
    return any;
}

bool
bh_victim_borrows(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t slot)
{
    const struct bh_side *side = victim_judge_side(preemptor, search, slot);

    return !side->guarded && side->owed > 0;
}

bool
bh_victim_eligible(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    const struct job *job = job_at(engine, slot);
    const struct bh_side *side;
    uint64_t since_ns;
    bool running;

    if (job->contract == BH_CONTRACT_NEVER || (job->priority >= preemptor->priority && !preemptor->cover)
        || !victim_is_there(engine, slot, &running, &since_ns))
        return false;
    side = victim_judge_side(preemptor, search, slot);
    if (side->guarded || (job->priority >= preemptor->priority && side->owed == 0))
        return false;
    if (side->min_runtime_ns == 0)
        return true;
    since_ns += side->min_runtime_ns;
    if (running && since_ns <= engine->core.now_ns)
        return true;
    if (running && (preemptor->of_age_ns == 0 || since_ns < preemptor->of_age_ns))
        preemptor->of_age_ns = since_ns;
    return false;
}

bool
bh_victim_may_leave(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t slot)
{
    const struct job *job = job_at(search->engine, slot);

    if (!bh_victim_eligible(preemptor, search, slot))
        return false;
    if (search->gone_count == 0)
        return true;
    return !bh_quota_protects(search, slot)
           && (job->priority < preemptor->priority || victim_owed_by(search, job->tenant) > 0);
}

bool
bh_victim_suspends(const struct bh_engine *engine, uint32_t slot, uint32_t for_tenant)
{
    const struct job *job = job_at(engine, slot);

    return job->contract == BH_CONTRACT_SUSPEND
           && (engine->core.dedicated == 0
               || !bh_separation_between(engine, job->tenant, for_tenant).dedicated);
}

/* ---- all of them ---- */

/* Whether the job, and all of its tenant's that follow it, are too young, and none of them is
 * of age before one that is known. */
static bool
victim_are_young(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t slot)
{
    uint64_t min_ns = victim_side_of(preemptor, search, slot)->min_runtime_ns;
    uint64_t age_ns = bh_preemptible_since_ns(search->engine, slot) + min_ns;

    return min_ns && age_ns > search->engine->core.now_ns && preemptor->of_age_ns
           && preemptor->of_age_ns <= age_ns;
}

bool
bh_victim_next(struct bh_preemptor *preemptor, const struct bh_search *search,
               struct bh_victim_iterator *victims_iterator)
{
    const struct bh_engine *engine = search->engine;
    uint32_t job = victims_iterator->job ? bh_preemptible_next(engine, victims_iterator->job) : 0;

    if (job && victim_are_young(preemptor, search, job))
        job = 0;
    while (!job && bh_slot_next(engine, TABLE_TENANT, &victims_iterator->tenant)) {
        job = bh_preemptible_first(engine, victims_iterator->tenant);
        if (job
            && ((victims_iterator->within
                 && !bh_tenant_within(engine, victims_iterator->within, victims_iterator->tenant))
                || victim_are_young(preemptor, search, job)))
            job = 0;
    }
    victims_iterator->job = job;
    return job != 0;
}

uint64_t
bh_victims_could_free(struct bh_preemptor *preemptor, const struct bh_search *search,
                      const struct bh_filter *filter, uint64_t enough)
{
    const struct bh_engine *engine = search->engine;
    uint64_t sum = bh_filter_freed(search, filter);
    struct bh_victim_iterator victims_iterator = { .within = filter->tenant };

    while (sum < enough && bh_victim_next(preemptor, search, &victims_iterator)) {
        struct bh_wanted held;

        if (!bh_victim_eligible(preemptor, search, victims_iterator.job))
            continue;
        held = bh_quota_to_resume_all(engine, victims_iterator.job);
        sum += bh_filter_counts(engine, filter, &held);
    }
    return sum < enough ? sum : enough;
}

bool
bh_victims_any(struct bh_preemptor *preemptor, const struct bh_search *search)
{
    struct bh_victim_iterator victims_iterator = { .within = 0 };

    while (bh_victim_next(preemptor, search, &victims_iterator))
        if (bh_victim_eligible(preemptor, search, victims_iterator.job))
            return true;
    return false;
}

/* ---- costs ---- */

static bh_part_ns
victim_lost_by(const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    uint64_t parts = bh_quota_to_resume(engine, slot).equivalent;

    if (lease->state != LEASE_RUNNING || bh_victim_suspends(engine, lease->job, search->tenant))
        return 0;
    return (bh_part_ns)parts
           * (job->contract == BH_CONTRACT_CHECKPOINT ? job->grace_ns : bh_lease_ran_ns(engine, slot));
}

struct bh_cost
bh_victim_cost(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    uint64_t owed = preemptor->cover ? victim_judge_side(preemptor, search, slot)->first : UINT64_MAX;
    struct bh_cost cost = {
        .owed = preemptor->timeless ? owed > 0 : owed,
        .priority = job_at(engine, slot)->priority,
        .victims = 1,
        .began_ns = UINT64_MAX,
        .id = lease_at(engine, job_at(engine, slot)->lease)->id,
    };

    for (uint32_t at = 0; (at = bh_gang_next(engine, slot, at)) != 0;) {
        uint64_t since_ns = lease_at(engine, at)->since_ns;

        cost.lost += preemptor->timeless ? 0 : victim_lost_by(search, at);
        cost.began_ns = since_ns < cost.began_ns ? since_ns : cost.began_ns;
    }
    return cost;
}

struct bh_cost
bh_victims_cost(struct bh_preemptor *preemptor, const struct bh_search *search)
{
    struct bh_cost sum = { .owed = UINT64_MAX, .began_ns = UINT64_MAX, .id = UINT64_MAX };

    for (uint32_t i = 0; i < search->gone_count; i++) {
        struct bh_cost one = bh_victim_cost(preemptor, search, search->gone[i]);

        sum.owed = one.owed < sum.owed ? one.owed : sum.owed;
        sum.priority = one.priority > sum.priority ? one.priority : sum.priority;
        sum.lost += one.lost;
        sum.victims++;
        sum.began_ns = one.began_ns < sum.began_ns ? one.began_ns : sum.began_ns;
        sum.id = one.id < sum.id ? one.id : sum.id;
    }
    return sum;
}

bool
bh_cost_less(const struct bh_cost *a, const struct bh_cost *b)
{
    if (a->owed != b->owed)
        return a->owed > b->owed;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->lost != b->lost)
        return a->lost < b->lost;
    if (a->victims != b->victims)
        return a->victims < b->victims;
    if (a->began_ns != b->began_ns)
        return a->began_ns > b->began_ns;
    if (a->id != b->id)
        return a->id < b->id;
    return a->growth < b->growth;
}
