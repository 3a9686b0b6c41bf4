#include "engine/preempt.h"

#include <string.h>

#include "base/assert.h"
#include "engine/gang.h"
#include "engine/quota.h"
#include "engine/slots.h"
#include "engine/tenant.h"

/* Who leaves in one record, with all effects. */
enum { VICTIM_LEASES_MAX = 512 };

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
    struct place places[BH_JOB_PIECES_MAX];
    uint32_t count;
    uint32_t leases; /* of all who leave */
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

/* The work that is lost when a job leaves: that of all its members. */
static uint64_t
lost_with(const struct bh_engine *engine, uint32_t job)
{
    uint64_t lost_ns = 0;

    for (uint32_t at = job_at(engine, job)->lease; at; at = lease_at(engine, at)->next_member)
        lost_ns += bh_lease_ran_ns(engine, at);
    return lost_ns;
}

/* What it costs to have one job leave: its class first, then the work it loses. */
static uint64_t
price_of(const struct bh_engine *engine, uint32_t job)
{
    const uint64_t most_ns = (UINT64_C(1) << 60) - 1; /* 36 years */
    uint64_t lost_ns = lost_with(engine, job);
    uint64_t priority = job_at(engine, job)->priority;

    return priority << 60 | (lost_ns < most_ns ? lost_ns : most_ns);
}

static uint32_t
highest_of(const struct bh_search *search)
{
    uint32_t highest = 0;

    for (uint32_t i = 0; i < search->gone_count; i++) {
        uint32_t priority = job_at(search->engine, search->gone[i])->priority;

        highest = priority > highest ? priority : highest;
    }
    return highest;
}

/* ---- who may be asked to leave ---- */

static bool
may_leave(const struct bh_search *search, uint32_t slot)
{
    const struct job *job = job_at(search->engine, slot);

    for (uint32_t at = 0; (at = bh_gang_next(search->engine, slot, at)) != 0;) {
        uint8_t state = lease_at(search->engine, at)->state;

        if (state != LEASE_RUNNING && state != LEASE_STARTING)
            return false;
    }
    if (job->priority >= job_at(search->engine, search->job)->priority
        || job->contract == BH_CONTRACT_NEVER)
        return false;
    return !bh_quota_protects(search, slot);
}

static bool
add_victim(struct scheme *scheme, uint32_t job)
{
    struct bh_search *search = &scheme->search;
    uint32_t gang = job_at(search->engine, job)->gang;

    if (search->gone_count == BH_VICTIMS_MAX || scheme->leases + gang > VICTIM_LEASES_MAX
        || !may_leave(search, job))
        return false;
    search->gone[search->gone_count++] = job;
    scheme->leases += gang;
    scheme->cost.priority = highest_of(search);
    scheme->cost.victims++;
    scheme->cost.lost_ns += lost_with(search->engine, job);
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
is_free(struct scheme *scheme, const struct target *target)
{
    scheme->places[scheme->count] =
        (struct place){ (uint32_t)gpu_at(scheme->search.engine, target->gpu)->id,
                        (uint16_t)target->profile, (uint16_t)target->start };
    return bh_place_free(&scheme->search, scheme->places, scheme->count);
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
        if (!add_victim(scheme, lease_at(engine, part->lease)->job))
            return false;
    }
    while (!bh_room_beside(&scheme->search, target->gpu, target->profile, &beside))
        if (!job_at(engine, beside)->lease || !add_victim(scheme, beside))
            return false;
    return true;
}

/* The cheapest job on the GPU that may leave and has not, or 0. */
static uint32_t
cheapest_on(const struct bh_search *search, uint32_t gpu)
{
    const struct bh_engine *engine = search->engine;
    uint64_t least = UINT64_MAX;
    uint32_t best = 0;

    for (uint32_t at = gpu_at(engine, gpu)->first_part; at;
         at = part_at(engine, at)->next_on_gpu) {
        uint32_t lease = part_at(engine, at)->lease, job = lease_at(engine, lease)->job;
        uint64_t price = price_of(engine, job);

        if (!lease || bh_room_is_gone(search, lease) || !may_leave(search, job))
            continue;
        if (best && price >= least)
            continue;
        best = job;
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
        uint32_t job = cheapest_on(&scheme->search, target->gpu);

        if (!job || !add_victim(scheme, job))
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

/* A copy without the places that are not used. */
static void
copy_scheme(struct scheme *to, const struct scheme *from)
{
    to->search = from->search;
    to->count = from->count;
    to->leases = from->leases;
    to->cost = from->cost;
    memcpy(to->places, from->places, from->count * sizeof(struct place));
}

/* The cheapest place on a node for one more piece, added to the scheme. */
static bool
add_place(struct scheme *scheme, const struct bh_need *need, uint32_t node, uint32_t row)
{
    const struct bh_engine *engine = scheme->search.engine;
    const struct sku *sku = sku_at(engine, need->sku);
    struct scheme best, next;
    bool found = false;

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu;
         gpu = gpu_at(engine, gpu)->next_on_node) {
        if (!bh_room_offered(engine, gpu_at(engine, gpu))
            || gpu_at(engine, gpu)->id == need->avoid_gpu
            || !bh_place_serves(engine, gpu_at(engine, gpu), need->tenant, sku, row))
            continue;
        for (uint32_t starts = starts_of(sku->profiles[row]); starts; starts &= starts - 1) {
            struct target target = { gpu, sku->profiles[row],
                                     (uint32_t)__builtin_ctz(starts) };

            copy_scheme(&next, scheme);
            if (!make_free(&next, &target))
                continue;
            next.cost.growth += growth_of(&next, &target);
            if (found && !cheaper(&next.cost, &best.cost))
                continue;
            next.count++; /* it was tried there */
            copy_scheme(&best, &next);
            found = true;
        }
    }
    if (found)
        copy_scheme(scheme, &best);
    return found;
}

/* ---- limits ---- */

/* Whether a lease below the tenant uses the very limit. */
static bool
counts_for(const struct bh_search *search, uint32_t slot, const struct bh_reason *limit)
{
    struct bh_wanted held = bh_quota_of_lease(search->engine, slot);

    if (limit->code == BH_REASON_QUOTA_SKU)
        return sku_at(search->engine, held.sku)->id == limit->sku.v;
    if (limit->code == BH_REASON_QUOTA_MODEL)
        return held.model == limit->model;
    if (limit->code == BH_REASON_QUOTA_USER)
        return held.principal == job_at(search->engine, search->job)->principal;
    return true;
}

/* The cheapest job that uses the limit and may leave, or 0; tenant 0 is anybody's. */
static uint32_t
cheapest_under(const struct bh_search *search, uint32_t tenant, const struct bh_reason *limit)
{
    const struct bh_engine *engine = search->engine;
    uint64_t least = UINT64_MAX;
    uint32_t best = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);
        uint64_t price = price_of(engine, lease->job);

        if (!lease->parts[0] || bh_room_is_gone(search, slot)
            || (tenant && !bh_tenant_within(engine, tenant, lease->tenant))
            || !counts_for(search, slot, limit) || !may_leave(search, lease->job))
            continue;
        if (best && price >= least)
            continue;
        best = lease->job;
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
        uint32_t job = cheapest_under(&scheme->search, whose, &limit);

        if (!job || !add_victim(scheme, job))
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

/* Whether it would do without one of those who leave: the scheme without him. */
static bool
is_needless(const struct scheme *scheme, uint32_t at, const struct bh_wanted *wanted,
           struct scheme *ret_without)
{
    const struct bh_engine *engine = scheme->search.engine;
    uint32_t job = scheme->search.gone[at];
    struct bh_search *search = &ret_without->search;

    copy_scheme(ret_without, scheme);
    search->gone[at] = search->gone[--search->gone_count];
    ret_without->leases -= job_at(engine, job)->gang;
    ret_without->cost.victims--;
    ret_without->cost.lost_ns -= lost_with(engine, job);
    ret_without->cost.priority = highest_of(search);
    return is_enough(ret_without, wanted);
}

/* Keep only victims without whom it would not do, sparing the dearest first. */
static void
spare(struct scheme *scheme, const struct bh_wanted *wanted)
{
    bool spared = true;

    while (spared) {
        uint64_t dearest = 0;
        struct scheme best, without;

        spared = false;
        for (uint32_t i = 0; i < scheme->search.gone_count; i++) {
            uint64_t price = price_of(scheme->search.engine, scheme->search.gone[i]);

            if ((spared && price <= dearest) || !is_needless(scheme, i, wanted, &without))
                continue;
            copy_scheme(&best, &without);
            dearest = price;
            spared = true;
        }
        if (spared)
            copy_scheme(scheme, &best);
    }
}

static void
init_scheme(struct scheme *scheme, const struct bh_search *search)
{
    scheme->search = *search;
    scheme->count = scheme->leases = 0;
    scheme->cost = (struct cost){ 0 };
}

/* Places for one member on a node. */
static bool
add_member(struct scheme *scheme, const struct bh_need *need, uint32_t node, uint32_t row)
{
    if (!node_at(scheme->search.engine, node)->up)
        return false;
    for (uint32_t i = 0; i < need->count; i++)
        if (!add_place(scheme, need, node, row))
            return false;
    return true;
}

/* One more member: on the node of the one before it (`node`, which moves) where nobody else
 * leaves for that, else where it costs least. */
static bool
add_anywhere(struct scheme *scheme, const struct bh_need *need, uint32_t row, uint32_t *node)
{
    struct scheme best, next;
    uint32_t best_node = 0;

    copy_scheme(&next, scheme);
    if (*node && add_member(&next, need, *node, row)
        && next.cost.victims == scheme->cost.victims) {
        copy_scheme(scheme, &next);
        return true;
    }
    for (uint32_t at = 0; bh_slot_next(scheme->search.engine, TABLE_NODE, &at);) {
        copy_scheme(&next, scheme);
        if (!add_member(&next, need, at, row)
            || (best_node && !cheaper(&next.cost, &best.cost)))
            continue;
        copy_scheme(&best, &next);
        best_node = at;
    }
    if (best_node)
        copy_scheme(scheme, &best);
    *node = best_node;
    return best_node != 0;
}

/* All members, the first on that node; on any when it is 0. */
static bool
scheme_for(const struct bh_search *search, const struct bh_need *need, uint32_t node,
           uint32_t row, struct scheme *ret_scheme)
{
    struct bh_wanted wanted = bh_place_wanted(search->engine, need, row);
    uint32_t placed = node != 0;

    init_scheme(ret_scheme, search);
    if (node && !add_member(ret_scheme, need, node, row))
        return false;
    for (; placed < need->gang; placed++)
        if (!add_anywhere(ret_scheme, need, row, &node))
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
    struct bh_wanted wanted = bh_place_wanted(search->engine, need, row);
    struct scheme probe;

    init_scheme(&probe, search);
    return make_quota(&probe, &wanted);
}

static void
keep_cheaper(struct scheme *best, bool *found, const struct scheme *next)
{
    if (!*found || cheaper(&next->cost, &best->cost))
        copy_scheme(best, next);
    *found = true;
}

/* A single is tried on every node; a gang looks for its nodes member by member. */
static bool
find_scheme(const struct bh_engine *engine, const struct bh_need *need,
            struct scheme *ret_scheme)
{
    struct bh_search search = { .engine = engine, .tenant = need->tenant, .job = need->job,
                                .past_leaving = true };
    struct scheme scheme;
    bool found = false;

    for (uint32_t row = 0; row < sku_at(engine, need->sku)->model_count; row++) {
        if (!quota_possible(&search, need, row))
            continue;
        if (need->gang > 1 && scheme_for(&search, need, 0, row, &scheme))
            keep_cheaper(ret_scheme, &found, &scheme);
        for (uint32_t node = 0; need->gang == 1 && bh_slot_next(engine, TABLE_NODE, &node);)
            if (scheme_for(&search, need, node, row, &scheme))
                keep_cheaper(ret_scheme, &found, &scheme);
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

/* The claim as decisions; those on who leaves follow from the work. */
static bool
claim_room(struct work *work, uint32_t job, const struct scheme *scheme,
           struct bh_decision *ret_decision)
{
    if (scheme->search.gone_count == 0)
        return false; /* those who leave already make room enough */
    bh_gang_begin(work, BH_DO_CLAIM, job, scheme->places, scheme->count);
    work->victims_for = job_at(work->engine, job)->id;
    work->victim_count = scheme->search.gone_count;
    for (uint32_t i = 0; i < scheme->search.gone_count; i++)
        work->victims[i] = scheme->search.gone[i];
    return bh_gang_decide(work, ret_decision);
}

bool
bh_preempt(struct work *work, const struct bh_need *need, struct bh_decision *ret_decision)
{
    struct scheme scheme;

    if (!may_preempt(work, job_at(work->engine, need->job))
        || !find_scheme(work->engine, need, &scheme))
        return false;
    return claim_room(work, need->job, &scheme, ret_decision);
}

bool
bh_preempt_to_resume(struct work *work, uint32_t job, struct bh_decision *ret_decision)
{
    const struct bh_engine *engine = work->engine;
    struct bh_search search = { .engine = engine, .tenant = job_at(engine, job)->tenant,
                                .job = job, .past_leaving = true };
    struct bh_wanted wanted = bh_gang_to_resume(engine, job);
    struct place places[BH_JOB_PIECES_MAX];
    uint32_t count = bh_gang_places(engine, job, places);
    struct scheme scheme;

    if (!may_preempt(work, job_at(engine, job)))
        return false;
    init_scheme(&scheme, &search);
    for (uint32_t i = 0; i < count; i++) {
        struct target target = { gpu_find(engine, places[i].gpu), places[i].profile,
                                 places[i].start };

        if (!make_free(&scheme, &target))
            return false;
        scheme.places[scheme.count++] = places[i];
    }
    if (!make_quota(&scheme, &wanted))
        return false;
    spare(&scheme, &wanted);
    return claim_room(work, job, &scheme, ret_decision);
}

bool
bh_preempt_next(struct work *work, struct bh_decision *ret_decision)
{
    const struct bh_engine *engine = work->engine;
    uint32_t slot;
    const struct job *job;
    bool suspend;

    if (work->victim_count == 0)
        return false;
    slot = work->victims[--work->victim_count];
    job = job_at(engine, slot);
    suspend = job->contract == BH_CONTRACT_SUSPEND && bh_gang_all(engine, slot, LEASE_RUNNING);
    *ret_decision = (struct bh_decision){
        .kind = suspend ? BH_DO_SUSPEND : BH_DO_STOP, .job = { job->id },
        .lease = { lease_at(engine, bh_gang_next(engine, slot, 0))->id },
        .for_job = { work->victims_for },
        .cause = suspend ? BH_END_NONE : BH_END_PREEMPTED };
    return true;
}
