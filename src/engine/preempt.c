#include "engine/preempt.h"

#include "base/assert.h"
#include "engine/lease.h"
#include "engine/quota.h"
#include "engine/slots.h"
#include "engine/tenant.h"

/* What a scheme costs, most important first. */
struct cost {
    uint32_t priority; /* the highest class among the victims */
    uint32_t victims;
    uint64_t lost_ns;
    int64_t growth; /* of fragmentation */
};

/* A way to make room: where the job goes, and who (search.gone) leaves. */
struct scheme {
    struct bh_search search;
    struct place places[BH_JOB_COUNT_MAX];
    uint32_t count;
    struct cost cost;
};

/* The place that is looked at. */
struct target {
    uint32_t gpu; /* slot */
    uint32_t profile, start;
};

static bool
cheaper(const struct cost *a, const struct cost *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->victims != b->victims)
        return a->victims < b->victims;
    if (a->lost_ns != b->lost_ns)
        return a->lost_ns < b->lost_ns;
    return a->growth < b->growth;
}

/* What it costs to have one lease leave: its class first, then the work it loses. */
static uint64_t
price_of(const struct bh_engine *engine, uint32_t slot)
{
    const uint64_t most_ns = (UINT64_C(1) << 60) - 1; /* 36 years */
    uint64_t lost_ns = bh_lease_ran_ns(engine, slot);
    uint64_t priority = job_at(engine, lease_at(engine, slot)->job)->priority;

    return priority << 60 | (lost_ns < most_ns ? lost_ns : most_ns);
}

static uint32_t
highest_of(const struct bh_search *search)
{
    uint32_t highest = 0;

    for (uint32_t i = 0; i < search->gone_count; i++) {
        const struct lease *lease = lease_at(search->engine, search->gone[i]);
        uint32_t priority = job_at(search->engine, lease->job)->priority;

        highest = priority > highest ? priority : highest;
    }
    return highest;
}

/* ---- who may be asked to leave ---- */

/* Whether a guarantee that does not cover the one who needs room would be broken
 * into. */
static bool
is_protected(const struct bh_search *search, uint32_t tenant, uint32_t sku)
{
    const struct bh_engine *engine = search->engine;

    for (uint32_t at = tenant; at; at = tenant_at(engine, at)->parent) {
        const struct tenant *above = tenant_at(engine, at);

        if (above->guarantee == 0 || bh_tenant_within(engine, at, search->tenant))
            continue;
        if (above->used - bh_quota_freed(search, at, sku).equivalent <= above->guarantee)
            return true;
    }
    return false;
}

static bool
may_leave(const struct bh_search *search, uint32_t slot)
{
    const struct lease *lease = lease_at(search->engine, slot);
    const struct job *job = job_at(search->engine, lease->job);

    if (lease->state != LEASE_RUNNING && lease->state != LEASE_STARTING)
        return false;
    if (job->priority >= job_at(search->engine, search->job)->priority
        || job->contract == BH_CONTRACT_NEVER)
        return false;
    return !is_protected(search, lease->tenant, job->sku);
}

static bool
add_victim(struct scheme *scheme, uint32_t lease)
{
    struct bh_search *search = &scheme->search;

    if (search->gone_count == BH_VICTIMS_MAX || !may_leave(search, lease))
        return false;
    search->gone[search->gone_count++] = lease;
    scheme->cost.priority = highest_of(search);
    scheme->cost.victims++;
    scheme->cost.lost_ns += bh_lease_ran_ns(search->engine, lease);
    return true;
}

/* ---- one place ---- */

static bool
overlaps(const struct part *part, const struct target *target)
{
    const struct bh_profile *one = bh_profile_get((bh_profile_id){ part->profile });
    const struct bh_profile *other = bh_profile_get((bh_profile_id){ target->profile });

    if (!one || !other)
        return true;
    return part->start < target->start + other->memory_units
           && target->start < part->start + one->memory_units;
}

/* Whether the place, together with those chosen before, can be had. */
static bool
is_free(const struct scheme *scheme, const struct target *target)
{
    struct place places[BH_JOB_COUNT_MAX + 1];

    for (uint32_t i = 0; i < scheme->count; i++)
        places[i] = scheme->places[i];
    places[scheme->count] =
        (struct place){ (uint32_t)gpu_at(scheme->search.engine, target->gpu)->id,
                        (uint16_t)target->profile, (uint16_t)target->start };
    return bh_place_possible(&scheme->search, places, scheme->count + 1);
}

/* Those who stand right there, and those beside whom the job must not stand. */
static bool
clear_place(struct scheme *scheme, const struct target *target)
{
    const struct bh_engine *engine = scheme->search.engine;
    uint32_t beside;

    for (uint32_t at = gpu_at(engine, target->gpu)->first_part; at;
         at = part_at(engine, at)->next_on_gpu) {
        const struct part *part = part_at(engine, at);

        if (!part->lease || bh_room_is_gone(&scheme->search, part->lease)
            || !overlaps(part, target))
            continue;
        if (!add_victim(scheme, part->lease))
            return false;
    }
    while (!bh_room_beside(&scheme->search, target->gpu, target->profile, &beside))
        if (!job_at(engine, beside)->lease || !add_victim(scheme, job_at(engine, beside)->lease))
            return false;
    return true;
}

/* The cheapest lease on the GPU that may leave and has not, or 0. */
static uint32_t
cheapest_on(const struct bh_search *search, uint32_t gpu)
{
    uint64_t least = UINT64_MAX;
    uint32_t best = 0;

    for (uint32_t at = gpu_at(search->engine, gpu)->first_part; at;
         at = part_at(search->engine, at)->next_on_gpu) {
        uint32_t lease = part_at(search->engine, at)->lease;
        uint64_t price = price_of(search->engine, lease);

        if (!lease || bh_room_is_gone(search, lease) || !may_leave(search, lease))
            continue;
        if (best && price >= least)
            continue;
        best = lease;
        least = price;
    }
    return best;
}

/* Extend the scheme so that the place is free. */
static bool
make_free(struct scheme *scheme, const struct target *target)
{
    if (is_free(scheme, target))
        return true;
    if (!clear_place(scheme, target))
        return false;
    while (!is_free(scheme, target)) {
        uint32_t lease = cheapest_on(&scheme->search, target->gpu);

        if (!lease || !add_victim(scheme, lease))
            return false;
    }
    return true;
}

/* How much more broken up the GPU is with the place taken. */
static int64_t
growth_of(const struct scheme *scheme, const struct target *target)
{
    const struct gpu *gpu = gpu_at(scheme->search.engine, target->gpu);
    enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;
    struct bh_occupancy occupancy;
    uint64_t before;

    bh_room_occupancy(&scheme->search, target->gpu, &occupancy);
    for (uint32_t i = 0; i < scheme->count; i++)
        if (scheme->places[i].gpu == gpu->id)
            bh_room_block(&occupancy, model, scheme->places[i].profile,
                          scheme->places[i].start);
    before = bh_occupancy_fragmentation(&occupancy, model);
    bh_room_block(&occupancy, model, target->profile, target->start);
    return (int64_t)bh_occupancy_fragmentation(&occupancy, model) - (int64_t)before;
}

static uint32_t
starts_of(uint32_t profile_id)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });

    return profile ? profile->starts : 1;
}

/* The cheapest place on a node for one more piece, added to the scheme. */
static bool
add_place(struct scheme *scheme, const struct bh_need *need, uint32_t node, uint32_t row)
{
    const struct bh_engine *engine = scheme->search.engine;
    const struct sku *sku = sku_at(engine, need->sku);
    struct scheme best = { .count = 0 };

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu;
         gpu = gpu_at(engine, gpu)->next_on_node) {
        if (!bh_room_offered(engine, gpu_at(engine, gpu))
            || gpu_at(engine, gpu)->id == need->avoid_gpu
            || !bh_place_serves(engine, gpu_at(engine, gpu), need->tenant, sku, row))
            continue;
        for (uint32_t starts = starts_of(sku->profiles[row]); starts; starts &= starts - 1) {
            struct target target = { gpu, sku->profiles[row],
                                     (uint32_t)__builtin_ctz(starts) };
            struct scheme next = *scheme;

            if (!make_free(&next, &target))
                continue;
            next.cost.growth += growth_of(&next, &target);
            if (best.count && !cheaper(&next.cost, &best.cost))
                continue;
            next.places[next.count++] =
                (struct place){ (uint32_t)gpu_at(engine, gpu)->id, (uint16_t)target.profile,
                                (uint16_t)target.start };
            best = next;
        }
    }
    if (best.count)
        *scheme = best;
    return best.count > 0;
}

/* ---- limits ---- */

/* The cheapest lease that uses the limit and may leave, or 0. */
static uint32_t
cheapest_under(const struct bh_search *search, uint32_t tenant, const struct bh_reason *limit)
{
    const struct bh_engine *engine = search->engine;
    uint64_t least = UINT64_MAX;
    uint32_t best = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);
        uint64_t price = price_of(engine, slot);

        if (!lease->parts[0] || bh_room_is_gone(search, slot)
            || !bh_tenant_within(engine, tenant, lease->tenant) || !may_leave(search, slot))
            continue;
        if (limit->code == BH_REASON_QUOTA_SKU
            && sku_at(engine, job_at(engine, lease->job)->sku)->id != limit->sku.v)
            continue;
        if (best && price >= least)
            continue;
        best = slot;
        least = price;
    }
    return best;
}

static bool
make_quota(struct scheme *scheme, const struct bh_wanted *wanted)
{
    struct bh_reason limit;
    uint32_t whose;

    while (!bh_quota_allows(&scheme->search, wanted, &limit, &whose)) {
        uint32_t lease = cheapest_under(&scheme->search, whose, &limit);

        if (!lease || !add_victim(scheme, lease))
            return false;
    }
    return true;
}

/* ---- the whole scheme ---- */

static bool
is_enough(const struct scheme *scheme, const struct bh_wanted *wanted)
{
    struct bh_reason limit;
    uint32_t whose;

    return bh_place_possible(&scheme->search, scheme->places, scheme->count)
           && bh_quota_allows(&scheme->search, wanted, &limit, &whose);
}

/* Keep only victims without whom it would not do, sparing the dearest first. */
static void
spare(struct scheme *scheme, const struct bh_wanted *wanted)
{
    bool spared = true;

    while (spared) {
        uint64_t dearest = 0;
        struct scheme best;

        spared = false;
        for (uint32_t i = 0; i < scheme->search.gone_count; i++) {
            struct scheme without = *scheme;
            uint32_t lease = scheme->search.gone[i];
            uint64_t price = price_of(scheme->search.engine, lease);

            without.search.gone[i] = without.search.gone[--without.search.gone_count];
            without.cost.victims--;
            without.cost.lost_ns -= bh_lease_ran_ns(scheme->search.engine, lease);
            without.cost.priority = highest_of(&without.search);
            if ((spared && price <= dearest) || !is_enough(&without, wanted))
                continue;
            best = without;
            dearest = price;
            spared = true;
        }
        if (spared)
            *scheme = best;
    }
}

static bool
scheme_for(const struct bh_search *search, const struct bh_need *need, uint32_t node,
           uint32_t row, struct scheme *ret_scheme)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    struct bh_wanted wanted = { need->tenant, need->sku, need->count,
                                bh_quota_equivalent(sku->profiles[row], need->count) };

    *ret_scheme = (struct scheme){ .search = *search };
    for (uint32_t i = 0; i < need->count; i++)
        if (!add_place(ret_scheme, need, node, row))
            return false;
    if (!make_quota(ret_scheme, &wanted))
        return false;
    spare(ret_scheme, &wanted);
    BH_ASSERT(is_enough(ret_scheme, &wanted));
    return true;
}

/* Whether the limits could be met at all: asked first, for it is the cheaper. */
static bool
quota_possible(const struct bh_search *search, const struct bh_need *need, uint32_t row)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    struct bh_wanted wanted = { need->tenant, need->sku, need->count,
                                bh_quota_equivalent(sku->profiles[row], need->count) };
    struct scheme probe = { .search = *search };

    return make_quota(&probe, &wanted);
}

static bool
find_scheme(const struct bh_search *base, const struct bh_need *need,
            struct scheme *ret_scheme)
{
    const struct bh_engine *engine = base->engine;
    struct bh_search search = *base;
    bool found = false;

    search.past_leaving = true;

    for (uint32_t row = 0; row < sku_at(engine, need->sku)->model_count; row++) {
        if (!quota_possible(&search, need, row))
            continue;
        for (uint32_t node = 0; bh_slot_next(engine, TABLE_NODE, &node);) {
            struct scheme scheme;

            if (!node_at(engine, node)->up
                || !scheme_for(&search, need, node, row, &scheme)
                || (found && !cheaper(&scheme.cost, &ret_scheme->cost)))
                continue;
            *ret_scheme = scheme;
            found = true;
        }
    }
    return found;
}

static bool
anyone_lower(const struct bh_engine *engine, uint8_t priority)
{
    uint32_t lower = 0;

    for (uint8_t i = 0; i < priority; i++)
        lower += engine->core.preemptable[i];
    return lower > 0;
}

/* Whether the job may make others leave at all, now. */
static bool
may_preempt(const struct work *work, const struct job *job)
{
    return anyone_lower(work->engine, job->priority)
           && work->engine->core.claim_count < CLAIMS_MAX
           && job->preempt_after_ns <= work->now_ns;
}

/* The claim as a decision; those who leave follow from the work. */
static bool
claim_room(struct work *work, const struct job *job, const struct scheme *scheme,
           struct bh_decision *ret_decision)
{
    if (scheme->search.gone_count == 0)
        return false; /* those who leave already make room enough */
    *ret_decision = (struct bh_decision){ .kind = BH_DO_CLAIM, .job = { job->id },
                                          .piece_count = scheme->count };
    for (uint32_t i = 0; i < scheme->count; i++)
        ret_decision->pieces[i] = (struct bh_piece){ .gpu = { scheme->places[i].gpu },
                                                     .profile = scheme->places[i].profile,
                                                     .start = scheme->places[i].start };
    work->victims_for = job->id;
    work->victim_count = scheme->search.gone_count;
    for (uint32_t i = 0; i < scheme->search.gone_count; i++)
        work->victims[i] = scheme->search.gone[i];
    return true;
}

bool
bh_preempt(struct work *work, const struct bh_search *search, const struct bh_need *need,
           struct bh_decision *ret_decision)
{
    const struct job *job = job_at(work->engine, need->job);
    struct scheme scheme = { .count = 0 };

    if (!may_preempt(work, job) || !find_scheme(search, need, &scheme))
        return false;
    return claim_room(work, job, &scheme, ret_decision);
}

bool
bh_preempt_for_lease(struct work *work, const struct bh_search *search, uint32_t slot,
                     struct bh_decision *ret_decision)
{
    const struct bh_engine *engine = work->engine;
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    struct scheme scheme = { .search = *search };
    struct bh_wanted wanted = bh_quota_to_resume(engine, slot);

    if (!may_preempt(work, job))
        return false;
    scheme.search.past_leaving = true;
    for (uint32_t i = 0; i < lease->count; i++) {
        const struct place *place = &lease->places[i];
        struct target target = { gpu_find(engine, place->gpu), place->profile, place->start };

        if (!make_free(&scheme, &target))
            return false;
        scheme.places[scheme.count++] = *place;
    }
    if (!make_quota(&scheme, &wanted))
        return false;
    spare(&scheme, &wanted);
    return claim_room(work, job, &scheme, ret_decision);
}

bool
bh_preempt_next(struct work *work, struct bh_decision *ret_decision)
{
    const struct lease *lease;
    const struct job *job;
    bool suspend;

    if (work->victim_count == 0)
        return false;
    lease = lease_at(work->engine, work->victims[--work->victim_count]);
    job = job_at(work->engine, lease->job);
    suspend = job->contract == BH_CONTRACT_SUSPEND && lease->state == LEASE_RUNNING;
    *ret_decision = (struct bh_decision){ .kind = suspend ? BH_DO_SUSPEND : BH_DO_STOP,
                                          .job = { job->id },
                                          .lease = { lease->id },
                                          .for_job = { work->victims_for },
                                          .cause = suspend ? BH_END_NONE : BH_END_PREEMPTED };
    return true;
}
