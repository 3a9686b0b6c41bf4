#include "engine/preempt/reserve.h"

#include <string.h>

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/account/usage.h"
#include "engine/placement/placement.h"
#include "engine/queue/avoid.h"
#include "engine/queue/claim.h"
#include "engine/queue/gang_decide.h"
#include "engine/state/gang.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"

/* What is about to leave counts as gone so much later: when it takes longer, the
 * reservation is worked out again. */
#define LEAVING_NS 60000000000ull

enum { ENDS_MAX = 256 };

_Static_assert((int)BH_GPU_MODELS <= 64, "a set of models is a number of 64 bits");

uint32_t
bh_reserve_model(const struct bh_engine *engine, const struct claim *claim)
{
    BH_ASSERT(claim->count > 0 && claim->job != 0);
    return gpu_at(engine, gpu_find(engine, claim->placements[0].gpu))->model;
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
reserve_certain_end_ns(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot);
    uint64_t ran_ns = job->lease ? lease_at(engine, bh_gang_next(engine, slot, 0))->ran_ns : 0;
    uint64_t left_ns = job->time_limit_ns > ran_ns ? job->time_limit_ns - ran_ns : 0;
    uint64_t ends_ns = UINT64_MAX;

    if (job->time_limit_ns && left_ns < UINT64_MAX - engine->core.now_ns)
        ends_ns = engine->core.now_ns + left_ns;
    return job->deadline_ns && job->deadline_ns < ends_ns ? job->deadline_ns : ends_ns;
}

/* Whether what is reserved does not bind the candidate, for it comes first. */
static bool
reserve_comes_before(const struct bh_engine *engine, const struct bh_queue_entry *entry,
                     const struct claim *claim)
{
    struct bh_queue_entry holder;

    bh_queue_entry_of_job(engine, claim->job, &holder);
    return (entry->class && entry->class == holder.class) || bh_queue_before(engine, entry, &holder);
}

struct bh_search
bh_reserve_search(const struct bh_engine *engine, const struct bh_queue_entry *entry, uint32_t job)
{
    struct bh_search search = { .engine = engine, .job = job, .tenant = job_at(engine, job)->tenant };
    uint64_t ends_ns = reserve_certain_end_ns(engine, job);

    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->at_ns == 0 || claim->job == job)
            continue;
        if (reserve_comes_before(engine, entry, claim))
            search.past |= 1u << i;
        else if (!engine->core.settings.backfill)
            search.closed |= UINT64_C(1) << bh_reserve_model(engine, claim);
        else if (ends_ns <= claim->at_ns)
            search.past |= 1u << i;
    }
    return search;
}

/* ---- where it can begin soonest ---- */

/* What is asked of a node, or of all (0): room for the need, or just these places. */
struct reserve_request {
    struct bh_search search;
    const struct bh_need *need; /* NULL: the places */
    const struct placement *placements;
    uint32_t count, row, node;
};

/* Where and when. */
struct reserve_offer {
    struct placement placements[BH_JOB_PARTITIONS_MAX];
    uint32_t count;
    uint64_t at_ns, node_id;
    int64_t growth;
};

/* Whether the request comes true by then. */
static bool
reserve_fits_by(struct reserve_request *request, uint64_t by_ns, struct reserve_offer *ret_offer)
{
    const struct bh_engine *engine = request->search.engine;
    struct bh_plan plan;

    request->search.by_ns = by_ns;
    ret_offer->count = request->count;
    ret_offer->at_ns = by_ns;
    ret_offer->growth = 0;
    ret_offer->node_id = node_at(engine, request->node)->id;
    if (!request->need) {
        memcpy(ret_offer->placements, request->placements, request->count * sizeof(struct placement));
        return bh_placement_possible(&request->search, request->placements, request->count);
    }
    if (!bh_placement_on(&request->search, request->need, request->row, request->node, &plan))
        return false;
    ret_offer->growth = plan.growth;
    bh_placement_list(engine, &plan, ret_offer->placements);
    return true;
}

/* Ends within a span of time, in order: the first of a sample when there are too many. */
struct reserve_ends {
    uint64_t after_ns, before_ns;
    uint64_t at[ENDS_MAX];
    uint32_t count;
};

static void
reserve_insert_end(struct reserve_ends *ends, uint64_t end_ns)
{
    uint32_t at = ends->count;

    if (end_ns <= ends->after_ns || end_ns >= ends->before_ns || at == ENDS_MAX)
        return;
    while (at > 0 && ends->at[at - 1] > end_ns)
        at--;
    if (at > 0 && ends->at[at - 1] == end_ns)
        return;
    memmove(&ends->at[at + 1], &ends->at[at], (ends->count - at) * sizeof(uint64_t));
    ends->at[at] = end_ns;
    ends->count++;
}

static void
reserve_insert_ends_on(const struct bh_engine *engine, uint32_t gpu, struct reserve_ends *ends)
{
    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->lease)
            reserve_insert_end(ends, bh_lease_ends_ns(engine, partition_at(engine, at)->lease));
}

static void
reserve_insert_ends_of_node(const struct bh_engine *engine, uint32_t node, struct reserve_ends *ends)
{
    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        reserve_insert_ends_on(engine, gpu, ends);
}

/* Of all that a place on the GPU counts on: where nodes are dedicated, on the whole node. */
static void
reserve_insert_ends_near(const struct bh_engine *engine, uint32_t gpu, struct reserve_ends *ends)
{
    if (engine->core.dedicated)
        reserve_insert_ends_of_node(engine, gpu_at(engine, gpu)->node, ends);
    else
        reserve_insert_ends_on(engine, gpu, ends);
}

/* When leases end where the request looks, on whole nodes: those beside may have to go, too. */
static void
reserve_list_ends(const struct reserve_request *request, struct reserve_ends *ends)
{
    const struct bh_engine *engine = request->search.engine;

    ends->count = 0;
    for (uint32_t i = 0; !request->need && i < request->count; i++)
        reserve_insert_ends_of_node(engine,
                                    gpu_at(engine, gpu_find(engine, request->placements[i].gpu))->node, ends);
    if (request->node)
        reserve_insert_ends_of_node(engine, request->node, ends);
    for (uint32_t node = 0; request->need && !request->node && bh_slot_next(engine, TABLE_NODE, &node);)
        if (node_at(engine, node)->models >> sku_at(engine, request->need->sku)->models[request->row] & 1)
            reserve_insert_ends_of_node(engine, node, ends);
}

static void
reserve_copy_offer(struct reserve_offer *to, const struct reserve_offer *from)
{
    memcpy(to->placements, from->placements, from->count * sizeof(struct placement));
    to->count = from->count;
    to->at_ns = from->at_ns;
    to->node_id = from->node_id;
    to->growth = from->growth;
}

/* Whether the request comes true by one of the ends: the span then ends, else begins there. */
static void
reserve_try_end(struct reserve_request *request, struct reserve_ends *ends, uint64_t end_ns,
                struct reserve_offer *best)
{
    struct reserve_offer offer;

    if (!reserve_fits_by(request, end_ns, &offer)) {
        ends->after_ns = end_ns;
        return;
    }
    reserve_copy_offer(best, &offer);
    ends->before_ns = end_ns;
}

/* Narrow the span to that between two ends, or an end and its edge: the request does not come
 * true by the first and does by the second, as far as it did before. */
static void
reserve_narrow(struct reserve_request *request, struct reserve_ends *ends, struct reserve_offer *best)
{
    uint32_t low = 0, high = ends->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        reserve_try_end(request, ends, ends->at[middle], best);
        if (ends->before_ns == ends->at[middle])
            high = middle;
        else
            low = middle + 1;
    }
}

/* When the request comes true first, at `by_ns` at the latest; room only grows with time.  Most
 * come true with the first end, so that it is tried before it is known that any will do. */
static bool
reserve_soonest(struct reserve_request *request, uint64_t by_ns, struct reserve_offer *ret_offer)
{
    uint64_t now_ns = request->search.engine->core.now_ns;
    struct reserve_ends ends = { .after_ns = now_ns, .before_ns = by_ns };
    struct reserve_offer best;

    if (by_ns != UINT64_MAX && !reserve_fits_by(request, by_ns, &best))
        return false;
    if (reserve_fits_by(request, now_ns, ret_offer)) {
        ret_offer->at_ns = now_ns + LEAVING_NS;
        return true;
    }
    reserve_list_ends(request, &ends);
    if (by_ns == UINT64_MAX) {
        if (ends.count == 0)
            return false;
        reserve_try_end(request, &ends, ends.at[0], &best);
        if (ends.before_ns == UINT64_MAX && !reserve_fits_by(request, UINT64_MAX, &best))
            return false;
        reserve_list_ends(request, &ends);
    }
    for (; ends.count > 0; reserve_list_ends(request, &ends))
        reserve_narrow(request, &ends, &best);
    if (ends.before_ns == UINT64_MAX)
        return false;
    reserve_copy_offer(ret_offer, &best);
    return true;
}

static bool
reserve_better(const struct reserve_offer *a, const struct reserve_offer *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    if (a->growth != b->growth)
        return a->growth < b->growth;
    return a->node_id < b->node_id;
}

static uint64_t
reserve_find_first_end_ns(const struct bh_engine *engine, uint32_t node, uint32_t model)
{
    uint64_t first_ns = UINT64_MAX;

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu)) {
        if (gpu_at(engine, gpu)->model != model && node_at(engine, node)->cpu_milli == 0
            && node_at(engine, node)->memory_mib == 0)
            continue; /* else what they leave of cores and memory may be what is missing */
        for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at)) {
            uint32_t lease = partition_at(engine, at)->lease;
            uint64_t end_ns = bh_capacity_is_leaving(engine, lease) ? 0
                              : lease                               ? bh_lease_ends_ns(engine, lease)
                                                                    : UINT64_MAX;

            first_ns = end_ns < first_ns ? end_ns : first_ns;
        }
    }
    return first_ns;
}

/* No node gets room for more before the first of its leases ends.  An end that lies ahead
 * stays where it is until something happens on the node. */
static uint64_t
reserve_first_end_ns(const struct bh_engine *engine, uint32_t node, uint32_t model)
{
    struct node_hint *hint = bh_node_hint(engine, node);

    if (node_at(engine, node)->models != 1u << model)
        return reserve_find_first_end_ns(engine, node, model);
    if (hint->end_ns <= engine->core.now_ns)
        hint->end_ns = reserve_find_first_end_ns(engine, node, model);
    return hint->end_ns;
}

static uint32_t
reserve_node_of_first_end(const struct bh_engine *engine, uint32_t model)
{
    uint64_t first_ns = UINT64_MAX;
    uint32_t first = 0;

    for (uint32_t node = 0; bh_slot_next(engine, TABLE_NODE, &node);) {
        uint64_t end_ns = reserve_first_end_ns(engine, node, model);

        if (end_ns >= first_ns)
            continue;
        first_ns = end_ns;
        first = node;
    }
    return first;
}

static bool
reserve_prefer_soonest(struct reserve_request *request, uint32_t node, bool found, struct reserve_offer *best)
{
    struct reserve_offer offer;

    request->node = node;
    if (!reserve_soonest(request, found ? best->at_ns : UINT64_MAX, &offer)
        || (found && !reserve_better(&offer, best)))
        return found;
    *best = offer;
    return true;
}

/* The most promising node first: few others need a closer look then.  A gang looks for
 * nodes together. */
static bool
reserve_soonest_in_row(struct reserve_request *request, bool found, struct reserve_offer *best)
{
    const struct bh_engine *engine = request->search.engine;
    uint32_t model = sku_at(engine, request->need->sku)->models[request->row];
    uint32_t first = reserve_node_of_first_end(engine, model);

    if (first && request->need->gang > 1)
        return reserve_prefer_soonest(request, 0, found, best);
    if (first)
        found = reserve_prefer_soonest(request, first, found, best);
    for (uint32_t node = 0; first && bh_slot_next(engine, TABLE_NODE, &node);)
        if (node != first && (!found || reserve_first_end_ns(engine, node, model) <= best->at_ns))
            found = reserve_prefer_soonest(request, node, found, best);
    return found;
}

static bool
reserve_soonest_of_class(const struct bh_search *search, const struct bh_need *need, uint64_t headed,
                         struct reserve_offer *ret_offer)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    bool found = false;

    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct reserve_request request = {
            .search = *search, .need = need, .row = row, .count = need->count * need->gang
        };
        struct bh_wanted wanted = bh_placement_wanted(search->engine, need, row);

        if (headed >> sku->models[row] & 1 || !bh_placement_by(search->engine, need, row)
            || !bh_quota_permits(search, &wanted))
            continue;
        found = reserve_soonest_in_row(&request, found, ret_offer);
    }
    return found;
}

/* The old places of a suspended gang. */
static bool
reserve_soonest_to_resume(const struct bh_search *search, struct reserve_offer *ret_offer)
{
    struct placement placements[BH_JOB_PARTITIONS_MAX];
    struct bh_wanted wanted = bh_quota_to_resume_all(search->engine, search->job);
    struct reserve_request request = { .search = *search,
                                       .placements = placements,
                                       .count = bh_gang_places(search->engine, search->job, placements) };

    return bh_quota_permits(search, &wanted) && reserve_soonest(&request, UINT64_MAX, ret_offer);
}

/* ---- the walk ---- */

static uint64_t
reserve_models_of(const struct bh_engine *engine, uint32_t sku_slot)
{
    const struct sku *sku = sku_at(engine, sku_slot);
    uint64_t models = 0;

    for (uint32_t i = 0; i < sku->model_count; i++)
        models |= UINT64_C(1) << sku->models[i];
    return models;
}

static uint32_t
reserve_model_of_lease(const struct bh_engine *engine, uint32_t slot)
{
    return gpu_at(engine, gpu_find(engine, lease_at(engine, slot)->placements[0].gpu))->model;
}

/* Whether the job's SKU still has the form that the places are of; a suspended gang goes back to
 * what it had. */
static bool
reserve_is_offered(const struct bh_engine *engine, const struct claim *claim)
{
    const struct job *job = job_at(engine, claim->job);
    const struct sku *sku = sku_at(engine, job->sku);
    struct bh_need need;

    if (!job->class)
        return true;
    need = bh_placement_need(engine, job->class);
    for (uint32_t row = 0; row < sku->model_count; row++)
        if (sku->profiles[row] == claim->placements[0].profile
            && sku->models[row] == bh_reserve_model(engine, claim))
            return bh_placement_by(engine, &need, row);
    return false;
}

/* Whether the reservation is what it should be. */
static bool
reserve_is_valid(const struct bh_engine *engine, const struct claim *claim)
{
    struct bh_wanted wanted = bh_quota_of_claim(engine, claim);
    struct bh_search search = {
        .engine = engine, .job = claim->job, .tenant = wanted.tenant, .past = bh_reserve_set(engine)
    };

    BH_ASSERT(claim->job != 0 && claim->at_ns != 0);
    if (claim->at_ns <= engine->core.now_ns || !reserve_is_offered(engine, claim)
        || !bh_quota_permits(&search, &wanted))
        return false;
    search.by_ns = claim->at_ns;
    if (!bh_placement_possible(&search, claim->placements, claim->count))
        return false;
    search.by_ns = claim->at_ns - 1;
    return claim->at_ns <= engine->core.now_ns + LEAVING_NS
           || !bh_placement_possible(&search, claim->placements, claim->count);
}

/* The models that a candidate may be the first for. */
static uint64_t
reserve_wanted_by(const struct bh_engine *engine, const struct bh_queue_entry *entry)
{
    return entry->class ? reserve_models_of(engine, class_at(engine, entry->class)->sku)
                        : UINT64_C(1) << reserve_model_of_lease(engine, entry->lease);
}

bool
bh_reserve_decide(struct work *work, struct bh_walk *walk, const struct bh_queue_entry *entry,
                  struct bh_decision *ret_decision)
{
    struct bh_engine *engine = work->engine;
    uint32_t job = bh_queue_job(engine, entry);
    const struct claim *own = bh_claim_reserved(engine, job);
    struct bh_search search = {
        .engine = engine, .job = job, .tenant = job_at(engine, job)->tenant, .past = bh_reserve_set(engine)
    };
    struct bh_need need;
    struct bh_reason why;
    struct reserve_offer offer;

    BH_ASSERT(!entry->class || !bh_queue_is_blocked(engine, entry->class));
    if (!job || (reserve_wanted_by(engine, entry) & ~walk->headed) == 0)
        return false;
    search.closed = walk->headed;
    if (own && reserve_is_valid(engine, own) && !(walk->headed >> bh_reserve_model(engine, own) & 1)) {
        walk->headed |= UINT64_C(1) << bh_reserve_model(engine, own);
        walk->kept |= 1u << (own - engine->core.claims);
        return false;
    }
    if (!own && engine->core.claim_count == CLAIMS_MAX)
        return false;
    if (entry->class) {
        need = bh_placement_need(engine, entry->class);
        if (bh_avoid_waits(engine, entry->class))
            return false;
        need.job = job;
        need.avoid_gpu = 0;
        need.avoid_node = 0;
        if (bh_usage_exhausted(engine, need.tenant, &why)
            || !reserve_soonest_of_class(&search, &need, walk->headed, &offer))
            return false;
    } else if (!reserve_soonest_to_resume(&search, &offer)) {
        return false;
    }
    bh_gang_begin_reserve(work, job, offer.placements, offer.count, offer.at_ns);
    return bh_gang_decide(work, ret_decision);
}

bool
bh_reserve_give_up(const struct bh_engine *engine, const struct bh_walk *walk,
                   struct bh_decision *ret_decision)
{
    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->at_ns == 0 || walk->kept >> i & 1)
            continue;
        *ret_decision =
            (struct bh_decision){ .kind = BH_DO_UNRESERVE, .job = { job_at(engine, claim->job)->id } };
        return true;
    }
    return false;
}

uint64_t
bh_reserve_until_ns(const struct bh_engine *engine)
{
    uint64_t until_ns = UINT64_MAX;

    for (uint32_t i = 0; engine->core.reserved && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];
        struct reserve_ends ends = { .after_ns = engine->core.now_ns, .before_ns = claim->at_ns };

        if (claim->at_ns == 0)
            continue;
        for (uint32_t k = 0; k < claim->count; k++)
            reserve_insert_ends_near(engine, gpu_find(engine, claim->placements[k].gpu), &ends);
        if (ends.count > 0 && ends.at[0] < until_ns)
            until_ns = ends.at[0];
        if (claim->at_ns < until_ns)
            until_ns = claim->at_ns;
    }
    return until_ns;
}

void
bh_reserve_forget_ends(struct bh_engine *engine)
{
    for (uint32_t node = 0; bh_slot_next(engine, TABLE_NODE, &node);)
        bh_node_hint(engine, node)->end_ns = 0;
}

bool
bh_reserve_ends_known(const struct bh_engine *engine, uint32_t node)
{
    uint64_t end_ns = bh_node_hint(engine, node)->end_ns;
    uint32_t model = (uint32_t)__builtin_ctz(node_at(engine, node)->models | 1u << 31);

    return end_ns <= engine->core.now_ns || end_ns == reserve_find_first_end_ns(engine, node, model);
}
