#include "engine/victim.h"

#include "base/assert.h"
#include "engine/lease.h"
#include "engine/slots.h"
#include "engine/tenant.h"

/* ---- the asker ---- */

/* Room that is being made for others of a tenant will be used, too. */
static uint64_t
claimed_within(const struct bh_engine *engine, uint32_t tenant, uint32_t but_job)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->job && claim->job != but_job && !claim->at_ns
            && bh_tenant_within(engine, tenant, job_at(engine, claim->job)->tenant))
            sum += claim->equivalent;
    }
    return sum;
}

/* As bh_quota_guaranteed, with what is being made room for. */
static bool
is_guaranteed(const struct bh_engine *engine, const struct bh_wanted *wanted, uint32_t job)
{
    bool covered = false;

    for (uint32_t at = wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        const struct tenant *tenant = tenant_at(engine, at);

        if (tenant->guarantee == 0)
            continue;
        if (tenant->used + claimed_within(engine, at, job) + wanted->equivalent
            > tenant->guarantee)
            return false;
        covered = true;
    }
    return covered;
}

void
bh_asker_init(struct bh_asker *asker, const struct bh_search *search, uint32_t job,
              const struct bh_wanted *wanted)
{
    const struct bh_engine *engine = search->engine;

    *asker = (struct bh_asker){ .wanted = *wanted, .job = job,
                                .priority = job_at(engine, job)->priority,
                                .guaranteed = is_guaranteed(engine, wanted, job) };
    BH_ASSERT(search->gone_count == 0);
}

bool
bh_asker_may(const struct bh_asker *asker, const struct bh_engine *engine)
{
    uint32_t below = asker->guaranteed ? BH_PRIORITIES : asker->priority;
    uint32_t count = 0;

    for (uint32_t i = 0; i < below; i++)
        count += engine->core.preemptable[i];
    return count > 0;
}

/* ---- sides of the tree ---- */

/* What the subtree uses in what is imagined. */
static uint64_t
used_within(const struct bh_search *search, uint32_t tenant)
{
    return tenant_at(search->engine, tenant)->used - bh_quota_freed(search, tenant, 0).equivalent;
}

/* Whether a guarantee that does not cover the asker would be broken into. */
static bool
is_guarded(const struct bh_search *search, uint32_t tenant)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t at = tenant; at; at = tenant_at(engine, at)->parent) {
        uint64_t guarantee = tenant_at(engine, at)->guarantee;

        if (guarantee && !bh_tenant_within(engine, at, search->tenant)
            && used_within(search, at) <= guarantee)
            return true;
    }
    return false;
}

/* Whether the asker has a guarantee that it does not share with the tenant. */
static bool
has_own_guarantee(const struct bh_search *search, uint32_t tenant)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t at = search->tenant; at; at = tenant_at(engine, at)->parent)
        if (tenant_at(engine, at)->guarantee && !bh_tenant_within(engine, at, tenant))
            return true;
    return false;
}

/* How far the tenant's side, below what it has in common with the asker, is beyond what it
 * is guaranteed. */
static uint64_t
owed_by(const struct bh_search *search, uint32_t tenant)
{
    const struct bh_engine *engine = search->engine;
    uint64_t most = 0;

    for (uint32_t at = tenant; at; at = tenant_at(engine, at)->parent) {
        uint64_t used = used_within(search, at), guarantee = tenant_at(engine, at)->guarantee;

        if (bh_tenant_within(engine, at, search->tenant))
            break;
        if (used > guarantee && used - guarantee > most)
            most = used - guarantee;
    }
    return most;
}

static uint64_t
min_runtime_ns(const struct bh_search *search, uint32_t tenant)
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

/* Worked out once for each tenant, with nobody gone. */
static const struct bh_side *
side_of(struct bh_asker *asker, const struct bh_search *search, uint32_t tenant)
{
    struct bh_side *side = &asker->sides[tenant % BH_SIDES];
    struct bh_search base = *search;

    if (side->tenant == tenant)
        return side;
    base.gone_count = 0;
    *side = (struct bh_side){ .tenant = tenant, .guarded = is_guarded(&base, tenant),
                              .min_runtime_ns = min_runtime_ns(&base, tenant) };
    if (asker->guaranteed && has_own_guarantee(&base, tenant))
        side->owed = owed_by(&base, tenant);
    return side;
}

/* ---- victims ---- */

/* Whether it has run for as long as it was promised; notes when it will have. */
static bool
is_of_age(struct bh_asker *asker, const struct bh_engine *engine, const struct lease *lease,
          uint64_t least_ns)
{
    uint64_t age_ns = lease->since_ns + least_ns;

    if (least_ns == 0 || (lease->state == LEASE_RUNNING && age_ns <= engine->core.now_ns))
        return true;
    if (lease->state == LEASE_RUNNING && (asker->of_age_ns == 0 || age_ns < asker->of_age_ns))
        asker->of_age_ns = age_ns;
    return false;
}

bool
bh_victim_eligible(struct bh_asker *asker, const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    const struct bh_side *side;

    if ((lease->state != LEASE_RUNNING && lease->state != LEASE_STARTING)
        || job->contract == BH_CONTRACT_NEVER)
        return false;
    if (job->priority >= asker->priority && !asker->guaranteed)
        return false;
    side = side_of(asker, search, lease->tenant);
    if (side->guarded || (job->priority >= asker->priority && side->owed == 0))
        return false;
    return is_of_age(asker, engine, lease, side->min_runtime_ns);
}

bool
bh_victim_may_leave(struct bh_asker *asker, const struct bh_search *search, uint32_t slot)
{
    const struct lease *lease = lease_at(search->engine, slot);
    const struct job *job = job_at(search->engine, lease->job);

    if (!bh_victim_eligible(asker, search, slot) || is_guarded(search, lease->tenant))
        return false;
    return job->priority < asker->priority || owed_by(search, lease->tenant) > 0;
}

/* ---- costs ---- */

static bh_part_ns
lost_by(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    uint64_t parts = bh_quota_to_resume(engine, slot).equivalent;

    if (lease->state != LEASE_RUNNING || job->contract == BH_CONTRACT_SUSPEND)
        return 0;
    return (bh_part_ns)parts * (job->contract == BH_CONTRACT_CHECKPOINT
                                    ? job->grace_ns
                                    : bh_lease_ran_ns(engine, slot));
}

struct bh_cost
bh_victim_cost(struct bh_asker *asker, const struct bh_search *search, uint32_t slot)
{
    const struct bh_engine *engine = search->engine;
    const struct lease *lease = lease_at(engine, slot);

    return (struct bh_cost){
        .owed = asker->guaranteed ? side_of(asker, search, lease->tenant)->owed : UINT64_MAX,
        .priority = job_at(engine, lease->job)->priority,
        .lost = lost_by(engine, slot),
        .victims = 1,
        .began_ns = lease->since_ns,
        .id = lease->id,
    };
}

struct bh_cost
bh_victims_cost(struct bh_asker *asker, const struct bh_search *search)
{
    struct bh_cost sum = { .owed = UINT64_MAX, .began_ns = UINT64_MAX, .id = UINT64_MAX };

    for (uint32_t i = 0; i < search->gone_count; i++) {
        struct bh_cost one = bh_victim_cost(asker, search, search->gone[i]);

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
