#include "engine/preempt/preempt.h"

#include <string.h>

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/account/tenant.h"
#include "engine/placement/placement.h"
#include "engine/preempt/bound.h"
#include "engine/preempt/reserve.h"
#include "engine/preempt/victim.h"
#include "engine/queue/gang_decide.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"

enum {
    /* A job may make room so often before something happens from outside: that alone bounds
     * how often jobs can drive each other out (docs/adr/0011-time-and-preemption.md). */
    CLAIMS_A_WINDOW = 3,
    PROMISES = 8,
    VICTIM_LEASES_MAX = 512, /* victims in one record, with all effects */
};

/* A way to make room: where the job goes, and which jobs (search.gone) leave. */
struct scheme {
    struct bh_preemptor *preemptor;
    struct bh_search search;
    struct placement placements[BH_JOB_PARTITIONS_MAX];
    uint32_t count;
    uint32_t leases; /* of all victims */
    struct bh_cost cost;
};

/* The place that is looked at. */
struct preempt_target {
    uint32_t gpu; /* slot */
    uint32_t profile, start;
};

static void
preempt_init_scheme(struct scheme *scheme, struct bh_preemptor *preemptor, const struct bh_search *search)
{
    scheme->preemptor = preemptor;
    scheme->search = *search;
    scheme->count = scheme->leases = 0;
    scheme->cost = bh_victims_cost(preemptor, search);
}

/* A copy without the places that are not used. */
static void
preempt_copy_scheme(struct scheme *to, const struct scheme *from)
{
    to->preemptor = from->preemptor;
    to->search = from->search;
    to->count = from->count;
    to->leases = from->leases;
    to->cost = from->cost;
    memcpy(to->placements, from->placements, from->count * sizeof(struct placement));
}

static void
preempt_add_up(struct scheme *scheme)
{
    int64_t growth = scheme->cost.growth;

    scheme->cost = bh_victims_cost(scheme->preemptor, &scheme->search);
    scheme->cost.growth = growth;
}

static bool
preempt_add_victim(struct scheme *scheme, uint32_t job)
{
    struct bh_search *search = &scheme->search;
    uint32_t gang = job_at(search->engine, job)->gang;

    if (search->gone_count == BH_VICTIMS_MAX || scheme->leases + gang > VICTIM_LEASES_MAX
        || bh_capacity_empties(search, scheme->placements, scheme->count, job)
        || !bh_victim_may_leave(scheme->preemptor, search, job))
        return false;
    search->gone[search->gone_count++] = job;
    scheme->leases += gang;
    preempt_add_up(scheme);
    return true;
}

/* ---- one place ---- */

/* Whether the place, together with those chosen before, can be had. */
static bool
preempt_is_free(struct scheme *scheme, const struct preempt_target *target)
{
    scheme->placements[scheme->count] =
        (struct placement){ (uint32_t)gpu_at(scheme->search.engine, target->gpu)->id, target->profile,
                            target->start };
    return bh_placement_free(&scheme->search, scheme->placements, scheme->count);
}

/* The job that stands in the way leaves, where it runs and may be asked. */
static bool
preempt_send_away(struct scheme *scheme, uint32_t job)
{
    return job_at(scheme->search.engine, job)->lease && preempt_add_victim(scheme, job);
}

/* The jobs on the placement itself, those that the job must not have as neighbors, and those on the node that
 * must not be near. */
static bool
preempt_clear_place(struct scheme *scheme, const struct preempt_target *target)
{
    const struct bh_engine *engine = scheme->search.engine;
    uint32_t node = gpu_at(engine, target->gpu)->node, beside;

    for (uint32_t at = gpu_at(engine, target->gpu)->first_partition; at;
         at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (!partition->lease || bh_capacity_is_gone(&scheme->search, partition->lease)
            || !bh_capacity_overlaps(partition, target->profile, target->start))
            continue;
        if (!preempt_add_victim(scheme, lease_at(engine, partition->lease)->job))
            return false;
    }
    while (!bh_capacity_beside(&scheme->search, target->gpu, target->profile, &beside))
        if (!preempt_send_away(scheme, beside))
            return false;
    while (!bh_capacity_on_node(&scheme->search, node, &beside))
        if (!preempt_send_away(scheme, beside))
            return false;
    return true;
}

/* Whether the job is gone in what is imagined: its first member says so for all. */
static bool
preempt_is_gone(const struct bh_search *search, uint32_t job)
{
    for (uint32_t i = 0; i < search->gone_count; i++)
        if (search->gone[i] == job)
            return true;
    return false;
}

/* The cheapest so far; job (slot) 0 is none. */
struct cheapest {
    uint32_t job;
    struct bh_cost cost;
};

/* Keep the job where it may leave, has not, and is cheaper. */
static void
preempt_prefer_cheaper(const struct scheme *scheme, uint32_t job, struct cheapest *best)
{
    struct bh_cost cost;

    if (job == best->job || preempt_is_gone(&scheme->search, job)
        || bh_capacity_empties(&scheme->search, scheme->placements, scheme->count, job)
        || !bh_victim_eligible(scheme->preemptor, &scheme->search, job))
        return;
    cost = bh_victim_cost(scheme->preemptor, &scheme->search, job);
    if ((best->job && !bh_cost_less(&cost, &best->cost))
        || !bh_victim_may_leave(scheme->preemptor, &scheme->search, job))
        return;
    *best = (struct cheapest){ job, cost };
}

static void
preempt_prefer_cheapest_on(const struct scheme *scheme, uint32_t gpu, struct cheapest *best)
{
    const struct bh_engine *engine = scheme->search.engine;

    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->lease)
            preempt_prefer_cheaper(scheme, lease_at(engine, partition_at(engine, at)->lease)->job, best);
}

/* The cheapest job on the GPU, or 0. */
static uint32_t
preempt_cheapest_on(const struct scheme *scheme, uint32_t gpu)
{
    struct cheapest best = { .job = 0 };

    preempt_prefer_cheapest_on(scheme, gpu, &best);
    return best.job;
}

/* The cheapest job on any GPU of the node, or 0. */
static uint32_t
preempt_cheapest_near(const struct scheme *scheme, uint32_t node)
{
    const struct bh_engine *engine = scheme->search.engine;
    struct cheapest best = { .job = 0 };

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        preempt_prefer_cheapest_on(scheme, gpu, &best);
    return best.job;
}

/* A job to preempt when the placement is not free yet: where only cores or memory are missing, any job on the
 * node. */
static uint32_t
preempt_next_to_leave(const struct scheme *scheme, const struct preempt_target *target)
{
    if (bh_placement_hosted(&scheme->search, scheme->placements, scheme->count))
        return preempt_cheapest_on(scheme, target->gpu);
    return preempt_cheapest_near(scheme, gpu_at(scheme->search.engine, target->gpu)->node);
}

/* Extend the scheme so that the placement is free.  No job leaves for one on a GPU that is reset before it
 * holds another job, whatever is missing: cores, too, would come too late.  Nor is it a placement when the
 * victims are the last jobs on it. */
static bool
preempt_make_free(struct scheme *scheme, const struct preempt_target *target)
{
    if (preempt_is_free(scheme, target))
        return !bh_capacity_empties(&scheme->search, &scheme->placements[scheme->count], 1, 0);
    if (bh_capacity_is_futile(scheme->search.engine, target->gpu) || !preempt_clear_place(scheme, target))
        return false;
    while (!preempt_is_free(scheme, target)) {
        uint32_t job = preempt_next_to_leave(scheme, target);

        if (!job || !preempt_add_victim(scheme, job))
            return false;
    }
    return true;
}

/* How much more broken up the GPU is with the place taken. */
static int64_t
preempt_growth_of(const struct scheme *scheme, const struct preempt_target *target)
{
    const struct gpu *gpu = gpu_at(scheme->search.engine, target->gpu);
    enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;
    struct bh_occupancy occupancy;
    uint64_t before;

    bh_capacity_occupancy(&scheme->search, target->gpu, &occupancy);
    for (uint32_t i = 0; i < scheme->count; i++)
        if (scheme->placements[i].gpu == gpu->id)
            bh_capacity_block(&occupancy, model, scheme->placements[i].profile, scheme->placements[i].start);
    before = bh_occupancy_fragmentation(&occupancy, model);
    bh_capacity_block(&occupancy, model, target->profile, target->start);
    return (int64_t)bh_occupancy_fragmentation(&occupancy, model) - (int64_t)before;
}

/* The cheapest place on a node for one more partition, added to the scheme. */
static bool
preempt_add_place(struct scheme *scheme, const struct bh_need *need, uint32_t node, uint32_t row)
{
    const struct bh_engine *engine = scheme->search.engine;
    const struct sku *sku = sku_at(engine, need->sku);
    struct scheme best, next;
    bool found = false;

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu)) {
        if (!bh_capacity_offered(engine, gpu_at(engine, gpu))
            || bh_avoids(need, gpu_at(engine, gpu)->id, node)
            || !bh_placement_serves(engine, gpu_at(engine, gpu), need->tenant, sku, row))
            continue;
        for (uint32_t starts = bh_capacity_starts(&scheme->search, gpu, sku->profiles[row],
                                                  scheme->placements, scheme->count);
             starts; starts &= starts - 1) {
            struct preempt_target target = { gpu, sku->profiles[row], (uint32_t)__builtin_ctz(starts) };

            preempt_copy_scheme(&next, scheme);
            if (!preempt_make_free(&next, &target))
                continue;
            next.cost.growth += preempt_growth_of(&next, &target);
            if (found && !bh_cost_less(&next.cost, &best.cost))
                continue;
            next.count++; /* it was tried there */
            preempt_copy_scheme(&best, &next);
            found = true;
        }
    }
    if (found)
        preempt_copy_scheme(scheme, &best);
    return found;
}

/* ---- limits ---- */

/* Whether a lease below the tenant uses the very limit. */
static bool
preempt_counts_for(const struct bh_search *search, uint32_t slot, const struct bh_reason *limit)
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

/* The cheapest job that uses the limit and may leave, or 0; tenant 0: of any tenant. */
static uint32_t
preempt_cheapest_under(const struct scheme *scheme, uint32_t tenant, const struct bh_reason *limit)
{
    const struct bh_engine *engine = scheme->search.engine;
    struct bh_victim_iterator victims_iterator = { .within = tenant };
    struct cheapest best = { .job = 0 };

    while (bh_victim_next(scheme->preemptor, &scheme->search, &victims_iterator)) {
        uint32_t lease = bh_gang_next(engine, victims_iterator.job, 0);

        if (lease && lease_at(engine, lease)->parts[0] && preempt_counts_for(&scheme->search, lease, limit))
            preempt_prefer_cheaper(scheme, victims_iterator.job, &best);
    }
    return best.job;
}

static bool
preempt_make_quota(struct scheme *scheme)
{
    struct bh_reason limit;
    uint32_t whose;

    while (!bh_quota_allows(&scheme->search, &scheme->preemptor->wanted, &limit, &whose)) {
        uint32_t job = preempt_cheapest_under(scheme, whose, &limit);

        if (!job || !preempt_add_victim(scheme, job))
            return false;
    }
    return true;
}

/* ---- the whole scheme ---- */

static bool
preempt_is_enough(const struct scheme *scheme)
{
    return bh_placement_possible(&scheme->search, scheme->placements, scheme->count)
           && bh_quota_permits(&scheme->search, &scheme->preemptor->wanted);
}

/* Whether the scheme is enough without one of its victims; `ret_without` is that scheme. */
static bool
preempt_is_needless(const struct scheme *scheme, uint32_t at, struct scheme *ret_without)
{
    struct bh_search *search = &ret_without->search;

    preempt_copy_scheme(ret_without, scheme);
    ret_without->leases -= job_at(search->engine, search->gone[at])->gang;
    search->gone[at] = search->gone[--search->gone_count];
    preempt_add_up(ret_without);
    return preempt_is_enough(ret_without);
}

/* Keep only victims that the scheme needs; spare the dearest first. */
static void
preempt_spare(struct scheme *scheme)
{
    bool spared = true;

    while (spared) {
        struct bh_cost dearest = { 0 };
        struct scheme best, less;

        spared = false;
        for (uint32_t i = 0; i < scheme->search.gone_count; i++) {
            struct bh_cost cost = bh_victim_cost(scheme->preemptor, &scheme->search, scheme->search.gone[i]);

            if ((spared && !bh_cost_less(&dearest, &cost)) || !preempt_is_needless(scheme, i, &less))
                continue;
            preempt_copy_scheme(&best, &less);
            dearest = cost;
            spared = true;
        }
        if (spared)
            preempt_copy_scheme(scheme, &best);
    }
}

/* Places for one member on a node. */
static bool
preempt_add_member(struct scheme *scheme, const struct bh_need *need, uint32_t node, uint32_t row)
{
    const struct bh_engine *engine = scheme->search.engine;

    if (!node_at(engine, node)->up
        || !(node_at(engine, node)->models >> sku_at(engine, need->sku)->models[row] & 1))
        return false;
    for (uint32_t i = 0; i < need->count; i++)
        if (!preempt_add_place(scheme, need, node, row))
            return false;
    return true;
}

/* One more member: on the node of the one before it (`node`, which moves) where no other
 * leaves for that, else where it costs least. */
static bool
preempt_add_anywhere(struct scheme *scheme, const struct bh_need *need, uint32_t row, uint32_t *node)
{
    struct scheme best, next;
    uint32_t best_node = 0;

    preempt_copy_scheme(&next, scheme);
    if (*node && preempt_add_member(&next, need, *node, row) && next.cost.victims == scheme->cost.victims) {
        preempt_copy_scheme(scheme, &next);
        return true;
    }
    for (uint32_t at = 0; bh_slot_next(scheme->search.engine, TABLE_NODE, &at);) {
        preempt_copy_scheme(&next, scheme);
        if (!preempt_add_member(&next, need, at, row) || (best_node && !bh_cost_less(&next.cost, &best.cost)))
            continue;
        preempt_copy_scheme(&best, &next);
        best_node = at;
    }
    if (best_node)
        preempt_copy_scheme(scheme, &best);
    *node = best_node;
    return best_node != 0;
}

/* All members, the first on that node; on any when it is 0. */
static bool
preempt_plan_scheme(const struct bh_bound_request *request, uint32_t node, struct scheme *ret_scheme)
{
    uint32_t placed = node != 0;

    preempt_init_scheme(ret_scheme, request->preemptor, request->search);
    if (node && !preempt_add_member(ret_scheme, request->need, node, request->row))
        return false;
    for (; placed < request->need->gang; placed++)
        if (!preempt_add_anywhere(ret_scheme, request->need, request->row, &node))
            return false;
    if (!preempt_make_quota(ret_scheme))
        return false;
    preempt_spare(ret_scheme);
    BH_ASSERT(preempt_is_enough(ret_scheme));
    return true;
}

/* The cheaper of two schemes: one that takes first the jobs that lose least, and one that takes them in order
 * whatever they lose.  Only the latter says whether there is one. */
static bool
preempt_scheme_for(const struct bh_bound_request *request, uint32_t node, struct scheme *ret_scheme)
{
    struct scheme other;
    bool found;

    request->preemptor->timeless = true;
    found = preempt_plan_scheme(request, node, ret_scheme);
    request->preemptor->timeless = false;
    if (!found || ret_scheme->search.gone_count == 0)
        return found;
    preempt_add_up(ret_scheme);
    if (preempt_plan_scheme(request, node, &other) && bh_cost_less(&other.cost, &ret_scheme->cost))
        preempt_copy_scheme(ret_scheme, &other);
    return true;
}

/* Whether the limits could be met at all: asked first, for it is the cheaper. */
static bool
preempt_quota_possible(const struct bh_bound_request *request)
{
    struct scheme probe;
    bool possible;

    request->preemptor->timeless = true;
    preempt_init_scheme(&probe, request->preemptor, request->search);
    possible = preempt_make_quota(&probe);
    request->preemptor->timeless = false;
    return possible;
}

/* Look at a node, when it could be cheaper than the best so far. */
static bool
preempt_prefer_best(const struct bh_bound_request *request, uint32_t node, bool found, struct scheme *best)
{
    struct bh_cost bound;
    struct scheme scheme;

    if (!node_at(request->search->engine, node)->up || !bh_bound(request, node, &bound)
        || (found && !bh_cost_less(&bound, &best->cost)))
        return found;
    if (!preempt_scheme_for(request, node, &scheme) || (found && !bh_cost_less(&scheme.cost, &best->cost)))
        return found;
    preempt_copy_scheme(best, &scheme);
    return true;
}

/* A node and its bound; 0 is none, and before all others. */
struct promise {
    uint32_t node;
    struct bh_cost bound;
};

static bool
preempt_promises_more(const struct promise *a, const struct promise *b)
{
    if (bh_cost_less(&a->bound, &b->bound))
        return true;
    return !bh_cost_less(&b->bound, &a->bound) && a->node < b->node;
}

/* The next two nodes in order of bounds. */
static void
preempt_next_promises(const struct bh_bound_request *request, const struct promise *after,
                      struct promise ret_next[2])
{
    struct promise next;

    ret_next[0].node = ret_next[1].node = 0;
    for (uint32_t node = 0; bh_slot_next(request->search->engine, TABLE_NODE, &node);) {
        next.node = node;
        if (!node_at(request->search->engine, node)->up || !bh_bound(request, node, &next.bound)
            || (after->node && !preempt_promises_more(after, &next))
            || (ret_next[1].node && !preempt_promises_more(&next, &ret_next[1])))
            continue;
        ret_next[1] = next;
        if (ret_next[0].node && !preempt_promises_more(&next, &ret_next[0]))
            continue;
        ret_next[1] = ret_next[0];
        ret_next[0] = next;
    }
}

/* A few nodes of the least bounds first: when one of them will do, few others need a closer
 * look, and none when the next bound is no less than what it costs. */
static bool
preempt_find_on_node(const struct bh_bound_request *request, bool found, struct scheme *best)
{
    struct promise next[2] = { { .node = 0 }, { .node = 0 } };

    preempt_next_promises(request, &(struct promise){ .node = 0 }, next);
    for (uint32_t i = 0; i < PROMISES && next[0].node && !found; i++) {
        found = preempt_prefer_best(request, next[0].node, found, best);
        if (found && (!next[1].node || !bh_cost_less(&next[1].bound, &best->cost)))
            return true;
        if (!found)
            preempt_next_promises(request, &(struct promise){ next[0].node, next[0].bound }, next);
    }
    for (uint32_t node = 0; next[0].node && bh_slot_next(request->search->engine, TABLE_NODE, &node);)
        found = preempt_prefer_best(request, node, found, best);
    return found;
}

/* Whether there could be room for the whole gang at all. */
static bool
preempt_gang_possible(const struct bh_bound_request *request)
{
    uint32_t members = 0;

    for (uint32_t node = 0;
         members < request->need->gang && bh_slot_next(request->search->engine, TABLE_NODE, &node);)
        members += bh_bound_members(request, node);
    return members >= request->need->gang;
}

/* A gang looks for its nodes member by member. */
static bool
preempt_find_in_row(const struct bh_bound_request *request, bool found, struct scheme *best)
{
    struct scheme scheme;

    if (request->need->gang == 1)
        return preempt_find_on_node(request, found, best);
    if (!preempt_gang_possible(request) || !preempt_scheme_for(request, 0, &scheme)
        || (found && !bh_cost_less(&scheme.cost, &best->cost)))
        return found;
    preempt_copy_scheme(best, &scheme);
    return true;
}

/* What is only too young may leave later: the asker is looked at again then. */
static void
preempt_note_age(struct work *work, const struct bh_preemptor *preemptor)
{
    if (preemptor->of_age_ns && (work->of_age_ns == 0 || preemptor->of_age_ns < work->of_age_ns))
        work->of_age_ns = preemptor->of_age_ns;
}

/* The cheapest scheme on any row.  With NULL: whether there is any job that the need could preempt, which is
 * much cheaper to know. */
static bool
preempt_find_scheme(struct work *work, const struct bh_search *search, const struct bh_need *need,
                    struct scheme *ret_scheme)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    bool found = false;

    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct bh_preemptor preemptor;
        struct bh_bound_request request = { &preemptor, search, need, row, bh_capacity_claims_bind(search) };
        struct bh_wanted wanted = bh_placement_wanted(search->engine, need, row);

        bh_preemptor_init(&preemptor, search, need->job, &wanted);
        if (search->closed >> sku->models[row] & 1 || !bh_placement_by(search->engine, need, row)
            || !bh_preemptor_may(&preemptor, search->engine))
            continue;
        if (bh_victims_any(&preemptor, search))
            found = !ret_scheme
                    || (preempt_quota_possible(&request) ? preempt_find_in_row(&request, found, ret_scheme)
                                                         : found);
        preempt_note_age(work, &preemptor);
    }
    return found;
}

/* The topmost tenant from `lowest` up on whose use it depends which jobs may be asked: whether a guarantee
 * covers the request. */
static uint32_t
preempt_topmost_concerned(const struct bh_engine *engine, uint32_t lowest, const struct bh_wanted *wanted)
{
    uint32_t top = lowest;

    for (uint32_t at = tenant_at(engine, lowest)->parent; at; at = tenant_at(engine, at)->parent)
        if (bh_guarantee_concerns(engine, at, wanted))
            top = at;
    return top;
}

static bool
preempt_row_in_vain(struct work *work, const struct bh_search *search, const struct bh_need *need,
                    uint32_t row, uint32_t *ret_within)
{
    const struct bh_engine *engine = work->engine;
    struct bh_wanted wanted = bh_placement_wanted(engine, need, row);
    struct bh_limit_shortage limit;
    struct bh_preemptor preemptor;

    if (!bh_quota_short(engine, &wanted, &limit) || bh_filter_freed(search, &limit.filter) >= limit.by)
        return false; /* else any job's end may help, wherever it is */
    *ret_within = preempt_topmost_concerned(engine, limit.filter.tenant, &wanted);
    if (!bh_preemptor_any_victim(engine))
        return true;
    bh_preemptor_init(&preemptor, search, need->job, &wanted);
    if (bh_preemptor_may(&preemptor, engine)
        && bh_victims_could_free(&preemptor, search, &limit.filter, limit.by) >= limit.by)
        return false;
    preempt_note_age(work, &preemptor);
    return true;
}

bool
bh_preempt_in_vain(struct work *work, const struct bh_need *need, uint32_t *ret_within)
{
    const struct bh_engine *engine = work->engine;
    struct bh_search search = { .engine = engine,
                                .tenant = need->tenant,
                                .job = need->job,
                                .past_leaving = true,
                                .past = bh_reserve_set(engine) };

    *ret_within = 0;
    for (uint32_t row = 0; row < sku_at(engine, need->sku)->model_count; row++) {
        uint32_t within;

        if (!bh_placement_by(engine, need, row))
            continue;
        if (!preempt_row_in_vain(work, &search, need, row, &within))
            return false;
        if (*ret_within == 0 || bh_tenant_within(engine, within, *ret_within))
            *ret_within = within;
    }
    return *ret_within != 0;
}

bool
bh_preempt_spent(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot);

    return job->claims_window == engine->core.window && job->claims >= CLAIMS_A_WINDOW;
}

bool
bh_preempt_pauses(const struct bh_engine *engine, uint32_t slot)
{
    return engine->core.claim_count == CLAIMS_MAX
           || job_at(engine, slot)->preempt_after_ns > engine->core.now_ns;
}

/* Whether the job (slot) may make others leave at all, now. */
static bool
may_preempt(const struct work *work, uint32_t job)
{
    return !bh_preempt_pauses(work->engine, job) && !bh_preempt_spent(work->engine, job);
}

/* The claim as decisions; those on its victims follow from the work. */
static bool
preempt_claim_capacity(struct work *work, uint32_t job, const struct scheme *scheme,
                       struct bh_decision *ret_decision)
{
    if (scheme->search.gone_count == 0)
        return false; /* the present victims already make room enough */
    bh_gang_begin(work, BH_DO_CLAIM, job, scheme->placements, scheme->count);
    work->victims_for = job_at(work->engine, job)->id;
    work->victim_count = scheme->search.gone_count;
    for (uint32_t i = 0; i < scheme->search.gone_count; i++)
        work->victims[i] = scheme->search.gone[i];
    return bh_gang_decide(work, ret_decision);
}

bool
bh_preempt(struct work *work, const struct bh_search *base, const struct bh_need *need,
           struct bh_decision *ret_decision)
{
    struct bh_search search = *base;
    struct scheme scheme;
    struct bh_plan plan;

    search.past_leaving = true;
    if (!may_preempt(work, need->job)
        || (work->engine->core.leaving
            && (!preempt_find_scheme(work, &search, need, NULL)
                || bh_placement_find(&search, need, &plan, NULL)))
        || !preempt_find_scheme(work, &search, need, &scheme))
        return false; /* the present victims make room enough, or none can */
    return preempt_claim_capacity(work, need->job, &scheme, ret_decision);
}

/* Exactly the gang's old places. */
static bool
preempt_plan_to_resume(struct bh_preemptor *preemptor, const struct bh_search *search,
                       struct scheme *ret_scheme)
{
    const struct bh_engine *engine = search->engine;
    struct placement placements[BH_JOB_PARTITIONS_MAX];
    uint32_t count = bh_gang_places(engine, search->job, placements);

    preempt_init_scheme(ret_scheme, preemptor, search);
    for (uint32_t i = 0; i < count; i++) {
        struct preempt_target target = { gpu_find(engine, placements[i].gpu), placements[i].profile,
                                         placements[i].start };

        if (!preempt_make_free(ret_scheme, &target))
            return false;
        ret_scheme->placements[ret_scheme->count++] = placements[i];
    }
    if (!preempt_make_quota(ret_scheme))
        return false;
    preempt_spare(ret_scheme);
    return true;
}

bool
bh_preempt_to_resume(struct work *work, const struct bh_search *base, struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    struct bh_wanted wanted = bh_quota_to_resume_all(engine, base->job);
    struct bh_search search = *base;
    struct scheme scheme, other;
    struct bh_preemptor preemptor;
    bool found;

    search.past_leaving = true;
    bh_preemptor_init(&preemptor, &search, base->job, &wanted);
    if (!may_preempt(work, base->job) || !bh_preemptor_may(&preemptor, engine))
        return false;
    preemptor.timeless = true;
    found = preempt_plan_to_resume(&preemptor, &search, &scheme);
    preemptor.timeless = false;
    preempt_note_age(work, &preemptor);
    if (!found)
        return false;
    preempt_add_up(&scheme);
    if (preempt_plan_to_resume(&preemptor, &search, &other) && bh_cost_less(&other.cost, &scheme.cost))
        preempt_copy_scheme(&scheme, &other);
    return preempt_claim_capacity(work, base->job, &scheme, ret_decision);
}

bool
bh_preempt_next(struct work *work, struct bh_decision *ret_decision)
{
    const struct bh_engine *engine = work->engine;
    const struct job *job, *preemptor;
    uint32_t slot;
    bool suspend;

    if (work->victim_count == 0)
        return false;
    slot = work->victims[--work->victim_count];
    job = job_at(engine, slot);
    preemptor = job_at(engine, job_find(engine, work->victims_for));
    suspend = bh_victim_suspends(engine, slot, preemptor->tenant) && bh_gang_all(engine, slot, LEASE_RUNNING);
    *ret_decision = (struct bh_decision){ .kind = suspend ? BH_DO_SUSPEND : BH_DO_STOP,
                                          .job = { job->id },
                                          .lease = { lease_at(engine, bh_gang_next(engine, slot, 0))->id },
                                          .for_job = { work->victims_for },
                                          .cause = suspend ? BH_END_NONE : BH_END_PREEMPTED };
    return true;
}
