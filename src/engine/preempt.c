#include "engine/preempt.h"

#include "base/assert.h"
#include "engine/bound.h"
#include "engine/quota.h"
#include "engine/slots.h"
#include "engine/tenant.h"
#include "engine/victim.h"

/* A job may make room so often before something happens from outside: that alone bounds how
 * often jobs can drive each other out (docs/adr/0011-time-and-preemption.md). */
enum { CLAIMS_A_WINDOW = 3, PROMISES = 8 };

/* A way to make room: where the job goes, and who (search.gone) leaves. */
struct scheme {
    struct bh_asker *asker;
    struct bh_search search;
    struct place places[BH_JOB_COUNT_MAX];
    uint32_t count;
    struct bh_cost cost;
};

/* The place that is looked at. */
struct target {
    uint32_t gpu; /* slot */
    uint32_t profile, start;
};

static void
add_up(struct scheme *scheme)
{
    int64_t growth = scheme->cost.growth;

    scheme->cost = bh_victims_cost(scheme->asker, &scheme->search);
    scheme->cost.growth = growth;
}

static bool
add_victim(struct scheme *scheme, uint32_t lease)
{
    struct bh_search *search = &scheme->search;

    if (search->gone_count == BH_VICTIMS_MAX
        || !bh_victim_may_leave(scheme->asker, search, lease))
        return false;
    search->gone[search->gone_count++] = lease;
    add_up(scheme);
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

/* Keep the cheaper of the two leases that may leave and has not. */
static void
keep_cheaper(const struct scheme *scheme, uint32_t lease, uint32_t *best)
{
    struct bh_cost cost, least;

    if (bh_room_is_gone(&scheme->search, lease)
        || !bh_victim_may_leave(scheme->asker, &scheme->search, lease))
        return;
    cost = bh_victim_cost(scheme->asker, &scheme->search, lease);
    least = bh_victim_cost(scheme->asker, &scheme->search, *best ? *best : lease);
    if (*best == 0 || bh_cost_less(&cost, &least))
        *best = lease;
}

/* The cheapest lease on the GPU, or 0. */
static uint32_t
cheapest_on(const struct scheme *scheme, uint32_t gpu)
{
    const struct bh_engine *engine = scheme->search.engine;
    uint32_t best = 0;

    for (uint32_t at = gpu_at(engine, gpu)->first_part; at;
         at = part_at(engine, at)->next_on_gpu)
        if (part_at(engine, at)->lease)
            keep_cheaper(scheme, part_at(engine, at)->lease, &best);
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
        uint32_t lease = cheapest_on(scheme, target->gpu);

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
            if (best.count && !bh_cost_less(&next.cost, &best.cost))
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

/* The cheapest lease that uses the limit, or 0. */
static uint32_t
cheapest_under(const struct scheme *scheme, uint32_t tenant, const struct bh_reason *limit)
{
    const struct bh_engine *engine = scheme->search.engine;
    uint32_t best = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);

        if (!lease->parts[0] || !bh_tenant_within(engine, tenant, lease->tenant))
            continue;
        if (limit->code == BH_REASON_QUOTA_SKU
            && sku_at(engine, job_at(engine, lease->job)->sku)->id != limit->sku.v)
            continue;
        keep_cheaper(scheme, slot, &best);
    }
    return best;
}

static bool
make_quota(struct scheme *scheme, const struct bh_wanted *wanted)
{
    struct bh_reason limit;
    uint32_t whose;

    while (!bh_quota_allows(&scheme->search, wanted, &limit, &whose)) {
        uint32_t lease = cheapest_under(scheme, whose, &limit);

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

/* The scheme without its i-th victim. */
static struct scheme
without(const struct scheme *scheme, uint32_t i)
{
    struct scheme less = *scheme;

    less.search.gone[i] = less.search.gone[--less.search.gone_count];
    add_up(&less);
    return less;
}

/* Keep only victims without whom it would not do, sparing the dearest first. */
static void
spare(struct scheme *scheme, const struct bh_wanted *wanted)
{
    bool spared = true;

    while (spared) {
        struct bh_cost dearest = { 0 };
        struct scheme best;

        spared = false;
        for (uint32_t i = 0; i < scheme->search.gone_count; i++) {
            struct scheme less = without(scheme, i);
            struct bh_cost cost =
                bh_victim_cost(scheme->asker, &scheme->search, scheme->search.gone[i]);

            if ((spared && !bh_cost_less(&dearest, &cost)) || !is_enough(&less, wanted))
                continue;
            best = less;
            dearest = cost;
            spared = true;
        }
        if (spared)
            *scheme = best;
    }
}

static struct bh_wanted
wanted_of(const struct bh_bid *bid)
{
    const struct sku *sku = sku_at(bid->search->engine, bid->need->sku);

    return (struct bh_wanted){ bid->need->tenant, bid->need->sku, bid->need->count,
                               bh_quota_equivalent(sku->profiles[bid->row], bid->need->count) };
}

static bool
scheme_for(const struct bh_bid *bid, uint32_t node, struct scheme *ret_scheme)
{
    struct bh_wanted wanted = wanted_of(bid);

    *ret_scheme = (struct scheme){ .asker = bid->asker, .search = *bid->search };
    add_up(ret_scheme);
    for (uint32_t i = 0; i < bid->need->count; i++)
        if (!add_place(ret_scheme, bid->need, node, bid->row))
            return false;
    if (!make_quota(ret_scheme, &wanted))
        return false;
    spare(ret_scheme, &wanted);
    BH_ASSERT(is_enough(ret_scheme, &wanted));
    return true;
}

/* Whether the limits could be met at all: asked first, for it is the cheaper. */
static bool
quota_possible(const struct bh_bid *bid)
{
    struct bh_wanted wanted = wanted_of(bid);
    struct scheme probe = { .asker = bid->asker, .search = *bid->search };

    return make_quota(&probe, &wanted);
}

/* Look at a node, when it could be cheaper than the best so far. */
static bool
keep_best(const struct bh_bid *bid, uint32_t node, bool found, struct scheme *best)
{
    struct bh_cost bound;
    struct scheme scheme;

    if (!node_at(bid->search->engine, node)->up || !bh_bound(bid, node, &bound)
        || (found && !bh_cost_less(&bound, &best->cost)))
        return found;
    if (!scheme_for(bid, node, &scheme)
        || (found && !bh_cost_less(&scheme.cost, &best->cost)))
        return found;
    *best = scheme;
    return true;
}

/* A node and its bound; 0 is none, and before all others. */
struct promise {
    uint32_t node;
    struct bh_cost bound;
};

static bool
promises_more(const struct promise *a, const struct promise *b)
{
    if (bh_cost_less(&a->bound, &b->bound))
        return true;
    return !bh_cost_less(&b->bound, &a->bound) && a->node < b->node;
}

/* The next two nodes in order of bounds. */
static void
next_promises(const struct bh_bid *bid, const struct promise *after,
              struct promise ret_next[2])
{
    struct promise next;

    ret_next[0].node = ret_next[1].node = 0;
    for (uint32_t node = 0; bh_slot_next(bid->search->engine, TABLE_NODE, &node);) {
        next.node = node;
        if (!node_at(bid->search->engine, node)->up || !bh_bound(bid, node, &next.bound)
            || (after->node && !promises_more(after, &next))
            || (ret_next[1].node && !promises_more(&next, &ret_next[1])))
            continue;
        ret_next[1] = next;
        if (ret_next[0].node && !promises_more(&next, &ret_next[0]))
            continue;
        ret_next[1] = ret_next[0];
        ret_next[0] = next;
    }
}

/* A few nodes of the least bounds first: when one of them will do, few others need a closer
 * look, and none when the next bound is no less than what it costs. */
static bool
find_in_row(const struct bh_bid *bid, bool found, struct scheme *best)
{
    struct promise next[2] = { { .node = 0 }, { .node = 0 } };

    next_promises(bid, &(struct promise){ .node = 0 }, next);
    for (uint32_t i = 0; i < PROMISES && next[0].node && !found; i++) {
        found = keep_best(bid, next[0].node, found, best);
        if (found && (!next[1].node || !bh_cost_less(&next[1].bound, &best->cost)))
            return true;
        if (!found)
            next_promises(bid, &(struct promise){ next[0].node, next[0].bound }, next);
    }
    for (uint32_t node = 0; next[0].node && bh_slot_next(bid->search->engine, TABLE_NODE, &node);)
        found = keep_best(bid, node, found, best);
    return found;
}

/* What is only too young may leave later: the asker is looked at again then. */
static void
note_age(struct work *work, const struct bh_asker *asker)
{
    if (asker->of_age_ns && (work->of_age_ns == 0 || asker->of_age_ns < work->of_age_ns))
        work->of_age_ns = asker->of_age_ns;
}

static bool
find_scheme(struct work *work, const struct bh_search *search, const struct bh_need *need,
            struct scheme *ret_scheme)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    bool found = false;

    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct bh_asker asker;
        struct bh_bid bid = { &asker, search, need, row };
        struct bh_wanted wanted = wanted_of(&bid);

        bh_asker_init(&asker, search, need->job, &wanted);
        if (search->closed >> sku->models[row] & 1 || !bh_asker_may(&asker, search->engine)
            || !quota_possible(&bid))
            continue;
        found = find_in_row(&bid, found, ret_scheme);
        note_age(work, &asker);
    }
    return found;
}

/* Whether the job may make others leave at all, now. */
static bool
may_preempt(const struct work *work, const struct job *job)
{
    const struct core *core = &work->engine->core;

    if (core->claim_count == CLAIMS_MAX || job->preempt_after_ns > work->now_ns)
        return false;
    return job->claims_window != core->window || job->claims < CLAIMS_A_WINDOW;
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
bh_preempt(struct work *work, const struct bh_search *base, const struct bh_need *need,
           struct bh_decision *ret_decision)
{
    const struct job *job = job_at(work->engine, need->job);
    struct bh_search search = *base;
    struct scheme scheme;

    search.past_leaving = true;
    if (!may_preempt(work, job) || !find_scheme(work, &search, need, &scheme))
        return false;
    return claim_room(work, job, &scheme, ret_decision);
}

/* Exactly the lease's old places. */
static bool
scheme_for_lease(struct bh_asker *asker, const struct bh_search *search, uint32_t slot,
                 struct scheme *ret_scheme)
{
    const struct bh_engine *engine = search->engine;
    const struct lease *lease = lease_at(engine, slot);

    *ret_scheme = (struct scheme){ .asker = asker, .search = *search };
    for (uint32_t i = 0; i < lease->count; i++) {
        const struct place *place = &lease->places[i];
        struct target target = { gpu_find(engine, place->gpu), place->profile, place->start };

        if (!make_free(ret_scheme, &target))
            return false;
        ret_scheme->places[ret_scheme->count++] = *place;
    }
    if (!make_quota(ret_scheme, &asker->wanted))
        return false;
    spare(ret_scheme, &asker->wanted);
    return true;
}

bool
bh_preempt_for_lease(struct work *work, const struct bh_search *base, uint32_t slot,
                     struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t job = lease_at(engine, slot)->job;
    struct bh_wanted wanted = bh_quota_to_resume(engine, slot);
    struct bh_search search = *base;
    struct bh_asker asker;
    struct scheme scheme;
    bool found;

    search.past_leaving = true;
    bh_asker_init(&asker, &search, job, &wanted);
    if (!may_preempt(work, job_at(engine, job)) || !bh_asker_may(&asker, engine))
        return false;
    found = scheme_for_lease(&asker, &search, slot, &scheme);
    note_age(work, &asker);
    return found && claim_room(work, job_at(engine, job), &scheme, ret_decision);
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
