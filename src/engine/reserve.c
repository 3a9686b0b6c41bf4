#include "engine/reserve.h"

#include "base/assert.h"
#include "engine/jobs.h"
#include "engine/lease.h"
#include "engine/place.h"
#include "engine/quota.h"
#include "engine/slots.h"

/* What is about to leave counts as gone so much later: when it takes longer, the
 * reservation is worked out again. */
#define LEAVING_NS 60000000000ull

enum { ENDS_MAX = 256 };

_Static_assert((int)BH_GPU_MODELS <= 64, "a set of models is a number of 64 bits");

uint32_t
bh_reserve_model(const struct bh_engine *engine, const struct claim *claim)
{
    return gpu_at(engine, gpu_find(engine, claim->places[0].gpu))->model;
}

uint32_t
bh_reserve_set(const struct bh_engine *engine)
{
    uint32_t set = 0;

    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++)
        set |= (uint32_t)(engine->core.claims[i].at_ns != 0) << i;
    return set;
}

/* ---- what others may use ---- */

/* When the job has certainly ended if it begins now, or UINT64_MAX. */
static uint64_t
certain_end_ns(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot);
    uint64_t ran_ns = job->lease ? lease_at(engine, job->lease)->ran_ns : 0;
    uint64_t left_ns = job->time_limit_ns > ran_ns ? job->time_limit_ns - ran_ns : 0;
    uint64_t ends_ns = UINT64_MAX;

    if (job->time_limit_ns && left_ns < UINT64_MAX - engine->core.now_ns)
        ends_ns = engine->core.now_ns + left_ns;
    return job->deadline_ns && job->deadline_ns < ends_ns ? job->deadline_ns : ends_ns;
}

/* Whether what is reserved does not bind the candidate, for it comes first. */
static bool
comes_before(const struct bh_engine *engine, const struct bh_candidate *candidate,
             const struct claim *claim)
{
    struct bh_candidate holder;

    bh_order_of_job(engine, claim->job, &holder);
    return (candidate->class && candidate->class == holder.class)
           || bh_order_before(candidate, &holder);
}

struct bh_search
bh_reserve_search(const struct bh_engine *engine, const struct bh_candidate *candidate,
                  uint32_t job)
{
    struct bh_search search = { .engine = engine, .job = job,
                                .tenant = job_at(engine, job)->tenant };
    uint64_t ends_ns = certain_end_ns(engine, job);

    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->at_ns == 0 || claim->job == job)
            continue;
        if (comes_before(engine, candidate, claim))
            search.past |= 1u << i;
        else if (!engine->core.settings.backfill)
            search.closed |= UINT64_C(1) << bh_reserve_model(engine, claim);
        else if (ends_ns <= claim->at_ns)
            search.past |= 1u << i;
    }
    return search;
}

/* ---- where it can begin soonest ---- */

/* What is asked of a node: room for the need, or just these places. */
struct wish {
    struct bh_search search;
    const struct bh_need *need; /* NULL: the places */
    const struct place *places;
    uint32_t count, row, node;
};

/* Where and when. */
struct offer {
    struct place places[BH_JOB_COUNT_MAX];
    uint32_t count;
    uint64_t at_ns, node_id;
    int64_t growth;
};

/* Whether the wish comes true by then. */
static bool
fits_by(struct wish *wish, uint64_t by_ns, struct offer *ret_offer)
{
    struct bh_plan plan;

    wish->search.by_ns = by_ns;
    ret_offer->count = wish->count;
    ret_offer->at_ns = by_ns;
    ret_offer->growth = 0;
    ret_offer->node_id = node_at(wish->search.engine, wish->node)->id;
    if (!wish->need) {
        for (uint32_t i = 0; i < wish->count; i++)
            ret_offer->places[i] = wish->places[i];
        return bh_place_possible(&wish->search, wish->places, wish->count);
    }
    if (!bh_place_on_node(&wish->search, wish->need, wish->row, wish->node, &plan))
        return false;
    ret_offer->growth = plan.growth;
    for (uint32_t i = 0; i < plan.count; i++)
        ret_offer->places[i] =
            (struct place){ (uint32_t)gpu_at(wish->search.engine, plan.spots[i].gpu)->id,
                            (uint16_t)plan.spots[i].profile, (uint16_t)plan.spots[i].start };
    return true;
}

static void
insert_end(uint64_t *ends, uint32_t *count, uint64_t end_ns)
{
    uint32_t at = *count;

    if (at == ENDS_MAX)
        return;
    for (; at > 0 && ends[at - 1] > end_ns; at--)
        ends[at] = ends[at - 1];
    ends[at] = end_ns;
    ++*count;
}

/* The ends of the node's leases within (after, by], in order. */
static uint32_t
list_ends(const struct wish *wish, uint64_t after_ns, uint64_t by_ns, uint64_t ends[ENDS_MAX])
{
    const struct bh_engine *engine = wish->search.engine;
    uint32_t count = 0;

    for (uint32_t gpu = node_at(engine, wish->node)->first_gpu; gpu;
         gpu = gpu_at(engine, gpu)->next_on_node)
        for (uint32_t at = gpu_at(engine, gpu)->first_part; at;
             at = part_at(engine, at)->next_on_gpu) {
            uint32_t lease = part_at(engine, at)->lease;
            uint64_t end_ns = lease ? bh_lease_ends_ns(engine, lease) : 0;

            if (end_ns > after_ns && end_ns <= by_ns)
                insert_end(ends, &count, end_ns);
        }
    return count;
}

/* When the wish comes true first, at `by_ns` at the latest; room only grows with time. */
static bool
soonest(struct wish *wish, uint64_t by_ns, struct offer *ret_offer)
{
    uint64_t now_ns = wish->search.engine->core.now_ns;
    uint64_t ends[ENDS_MAX];
    uint32_t low = 0, high, count;
    struct offer offer;

    if (!fits_by(wish, by_ns, &offer))
        return false;
    if (fits_by(wish, now_ns, &offer)) {
        *ret_offer = offer;
        ret_offer->at_ns = now_ns + LEAVING_NS;
        return true;
    }
    count = high = list_ends(wish, now_ns, by_ns, ends);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (fits_by(wish, ends[middle], &offer))
            high = middle;
        else
            low = middle + 1;
    }
    return fits_by(wish, low < count ? ends[low] : by_ns, ret_offer);
}

static bool
better(const struct offer *a, const struct offer *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    if (a->growth != b->growth)
        return a->growth < b->growth;
    return a->node_id < b->node_id;
}

/* No node gets room for more before the first of its leases ends. */
static uint64_t
first_end_ns(const struct bh_engine *engine, uint32_t node, uint32_t model)
{
    uint64_t first_ns = UINT64_MAX;

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu;
         gpu = gpu_at(engine, gpu)->next_on_node) {
        if (gpu_at(engine, gpu)->model != model)
            continue;
        for (uint32_t at = gpu_at(engine, gpu)->first_part; at;
             at = part_at(engine, at)->next_on_gpu) {
            uint32_t lease = part_at(engine, at)->lease;
            uint64_t end_ns = bh_room_is_leaving(engine, lease) ? 0
                              : lease ? bh_lease_ends_ns(engine, lease)
                                      : UINT64_MAX;

            first_ns = end_ns < first_ns ? end_ns : first_ns;
        }
    }
    return first_ns;
}

static uint32_t
node_of_first_end(const struct bh_engine *engine, uint32_t model)
{
    uint64_t first_ns = UINT64_MAX;
    uint32_t first = 0;

    for (uint32_t node = 0; bh_slot_next(engine, TABLE_NODE, &node);) {
        uint64_t end_ns = first_end_ns(engine, node, model);

        if (end_ns >= first_ns)
            continue;
        first_ns = end_ns;
        first = node;
    }
    return first;
}

static bool
keep_soonest(struct wish *wish, uint32_t node, bool found, struct offer *best)
{
    struct offer offer;

    wish->node = node;
    if (!soonest(wish, found ? best->at_ns : UINT64_MAX, &offer)
        || (found && !better(&offer, best)))
        return found;
    *best = offer;
    return true;
}

/* The most promising node first: few others need a closer look then. */
static bool
soonest_in_row(struct wish *wish, bool found, struct offer *best)
{
    const struct bh_engine *engine = wish->search.engine;
    uint32_t model = sku_at(engine, wish->need->sku)->models[wish->row];
    uint32_t first = node_of_first_end(engine, model);

    if (first)
        found = keep_soonest(wish, first, found, best);
    for (uint32_t node = 0; first && bh_slot_next(engine, TABLE_NODE, &node);)
        if (node != first && (!found || first_end_ns(engine, node, model) <= best->at_ns))
            found = keep_soonest(wish, node, found, best);
    return found;
}

static bool
limits_allow(const struct bh_search *search, const struct bh_wanted *wanted)
{
    struct bh_reason why;
    uint32_t whose;

    return bh_quota_allows(search, wanted, &why, &whose);
}

static bool
soonest_of_class(const struct bh_search *search, const struct bh_need *need, uint64_t headed,
                 struct offer *ret_offer)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    bool found = false;

    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct wish wish = { .search = *search, .need = need, .count = need->count, .row = row };
        struct bh_wanted wanted = { need->tenant, need->sku, need->count,
                                    bh_quota_equivalent(sku->profiles[row], need->count) };

        if (headed >> sku->models[row] & 1 || !limits_allow(search, &wanted))
            continue;
        found = soonest_in_row(&wish, found, ret_offer);
    }
    return found;
}

static bool
soonest_of_lease(const struct bh_search *search, uint32_t slot, struct offer *ret_offer)
{
    const struct lease *lease = lease_at(search->engine, slot);
    struct wish wish = { .search = *search, .places = lease->places, .count = lease->count,
                         .node = lease->node };
    struct bh_wanted wanted = bh_quota_to_resume(search->engine, slot);

    return limits_allow(search, &wanted) && soonest(&wish, UINT64_MAX, ret_offer);
}

/* ---- the walk ---- */

static uint64_t
models_of(const struct bh_engine *engine, uint32_t sku_slot)
{
    const struct sku *sku = sku_at(engine, sku_slot);
    uint64_t models = 0;

    for (uint32_t i = 0; i < sku->model_count; i++)
        models |= UINT64_C(1) << sku->models[i];
    return models;
}

static void
keep_next(const struct bh_walk *walk, const struct bh_candidate *candidate, bool *found,
          struct bh_candidate *next)
{
    if (walk->begun && !bh_order_before(&walk->at, candidate))
        return;
    if (*found && !bh_order_before(candidate, next))
        return;
    *next = *candidate;
    *found = true;
}

/* The next candidate that may be the first for some model. */
static bool
next_of(const struct bh_engine *engine, const struct bh_walk *walk,
        struct bh_candidate *ret_candidate)
{
    struct bh_candidate candidate;
    bool found = false;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        if (class_at(engine, slot)->hold
            || (models_of(engine, class_at(engine, slot)->sku) & ~walk->headed) == 0)
            continue;
        bh_order_of_class(engine, slot, &candidate);
        keep_next(walk, &candidate, &found, ret_candidate);
    }
    for (uint32_t slot = 0; engine->core.suspended && bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);
        uint32_t gpu = gpu_find(engine, lease->places[0].gpu);

        if (lease->state != LEASE_SUSPENDED || walk->headed >> gpu_at(engine, gpu)->model & 1)
            continue;
        bh_order_of_lease(engine, slot, &candidate);
        keep_next(walk, &candidate, &found, ret_candidate);
    }
    return found;
}

/* Whether the reservation is what it should be. */
static bool
stands(const struct bh_search *base, const struct claim *claim)
{
    const struct bh_engine *engine = base->engine;
    const struct job *job = job_at(engine, claim->job);
    struct bh_wanted wanted = { job->tenant, job->sku, claim->count, claim->equivalent };
    struct bh_search search = *base;

    search.by_ns = claim->at_ns;
    if (claim->at_ns <= engine->core.now_ns || !limits_allow(base, &wanted)
        || !bh_place_possible(&search, claim->places, claim->count))
        return false;
    search.by_ns = claim->at_ns - 1;
    return claim->at_ns <= engine->core.now_ns + LEAVING_NS
           || !bh_place_possible(&search, claim->places, claim->count);
}

static void
reserve(const struct bh_engine *engine, uint32_t job, const struct offer *offer,
        struct bh_decision *ret_decision)
{
    *ret_decision = (struct bh_decision){ .kind = BH_DO_RESERVE, .at_ns = offer->at_ns,
                                          .job = { job_at(engine, job)->id },
                                          .piece_count = offer->count };
    for (uint32_t i = 0; i < offer->count; i++)
        ret_decision->pieces[i] = (struct bh_piece){ .gpu = { offer->places[i].gpu },
                                                     .profile = offer->places[i].profile,
                                                     .start = offer->places[i].start };
}

/* What is reserved for a candidate that waits, and what should be. */
static bool
settle(struct work *work, struct bh_walk *walk, const struct bh_candidate *candidate,
       struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t job = bh_order_job(engine, candidate);
    const struct claim *claim = bh_job_reservation(engine, job);
    struct bh_search search = bh_reserve_search(engine, candidate, job);
    struct offer offer;
    bool found;

    if (!job)
        return false;
    search.closed = walk->headed;
    search.past = bh_reserve_set(engine);
    if (claim && stands(&search, claim)) {
        walk->headed |= UINT64_C(1) << bh_reserve_model(engine, claim);
        walk->kept |= 1u << (claim - engine->core.claims);
        return false;
    }
    if (candidate->class) {
        struct bh_need need = bh_place_need(engine, candidate->class);

        need.job = job;
        need.avoid_gpu = 0;
        found = soonest_of_class(&search, &need, walk->headed, &offer);
    } else {
        found = soonest_of_lease(&search, candidate->lease, &offer);
    }
    if (!found || (!claim && engine->core.claim_count == CLAIMS_MAX))
        return false;
    reserve(engine, job, &offer, ret_decision);
    return true;
}

/* A reservation of one who is not the first for any model. */
static bool
give_up(const struct bh_engine *engine, const struct bh_walk *walk,
        struct bh_decision *ret_decision)
{
    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->at_ns == 0 || walk->kept >> i & 1)
            continue;
        *ret_decision = (struct bh_decision){ .kind = BH_DO_UNRESERVE,
                                              .job = { job_at(engine, claim->job)->id } };
        return true;
    }
    return false;
}

bool
bh_reserve_walk(struct work *work, struct bh_walk *walk, const struct bh_candidate *bound,
                struct bh_decision *ret_decision)
{
    struct bh_candidate candidate;

    while (next_of(work->engine, walk, &candidate)
           && (!bound || bh_order_before(&candidate, bound))) {
        walk->at = candidate;
        walk->begun = true;
        if (settle(work, walk, &candidate, ret_decision))
            return true;
    }
    return !bound && give_up(work->engine, walk, ret_decision);
}
