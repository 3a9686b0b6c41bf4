#include "engine/forecast/defrag.h"

#include "base/assert.h"
#include "engine/account/usage.h"
#include "engine/forecast/defrag_join.h"
#include "engine/forecast/defrag_leave.h"
#include "engine/forecast/defrag_shift.h"
#include "engine/preempt/reserve.h"
#include "engine/queue/queue.h"
#include "engine/state/slots.h"

enum {
    WAITING_MOST = 8,  /* candidates that are looked at, in order */
    SETTLED_MOST = 64, /* nodes for which all new places are looked for, of one candidate */
};

/* How much sooner a job begins that has no reservation. */
#define SOONER_NS (UINT64_C(3600) * 1000000000)

/* A pending job, by one row of its SKU. */
struct defrag_request {
    struct bh_search base; /* none gone */
    const struct bh_need *need;
    uint32_t row;
    uint32_t settled; /* how often new places were looked for */
};

/* The place that is looked at. */
struct defrag_target {
    uint32_t gpu; /* slot */
    uint32_t profile, start;
};

/* ---- one place ---- */

/* Whether the place, beside those that are taken, can be had. */
static bool
defrag_is_free(const struct defrag_request *request, const struct bh_shift *shift,
               const struct defrag_target *target)
{
    struct bh_search search = request->base;
    struct placement placement = { (uint32_t)gpu_at(search.engine, target->gpu)->id, target->profile,
                                   target->start };

    bh_shift_imagine(shift, &search);
    return bh_placement_free(&search, &placement, 0);
}

/* The jobs that stand right there move. */
static bool
defrag_clear_place(struct bh_shift *shift, const struct defrag_target *target)
{
    const struct bh_engine *engine = shift->engine;

    for (uint32_t at = gpu_at(engine, target->gpu)->first_partition; at;
         at = bh_partition_after(engine, at)) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->lease && bh_capacity_overlaps(partition, target->profile, target->start)
            && !bh_shift_add(shift, lease_at(engine, partition->lease)->job))
            return false;
    }
    return true;
}

/* Keep the cheapest way to move one more of those on the GPU. */
static bool
defrag_cheapest_on(const struct bh_shift *shift, uint32_t gpu, struct bh_shift *best, bool found)
{
    const struct bh_engine *engine = shift->engine;

    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at)) {
        struct bh_shift next = *shift;

        if (!partition_at(engine, at)->lease
            || !bh_shift_add(&next, lease_at(engine, partition_at(engine, at)->lease)->job)
            || next.job_count == shift->job_count || (found && next.cost >= best->cost))
            continue;
        *best = next;
        found = true;
    }
    return found;
}

/* One more moves: of those on the GPU, or where but cores or memory are missing, on the
 * node. */
static bool
defrag_move_one_more(const struct defrag_request *request, struct bh_shift *shift, uint32_t gpu)
{
    const struct bh_engine *engine = shift->engine;
    struct placement placement = { .gpu = (uint32_t)gpu_at(engine, gpu)->id };
    struct bh_search search = request->base;
    struct bh_shift best;
    bool found = false;

    bh_shift_imagine(shift, &search);
    if (bh_placement_hosted(&search, &placement, 0))
        found = defrag_cheapest_on(shift, gpu, &best, false);
    else
        for (uint32_t at = node_at(engine, gpu_at(engine, gpu)->node)->first_gpu; at;
             at = bh_gpu_after(engine, at))
            found = defrag_cheapest_on(shift, at, &best, found);
    if (found)
        *shift = best;
    return found;
}

/* Extend the shift so that the place is free, and take it. */
static bool
defrag_make_free(const struct defrag_request *request, struct bh_shift *shift,
                 const struct defrag_target *target)
{
    struct placement placement = { (uint32_t)gpu_at(shift->engine, target->gpu)->id, target->profile,
                                   target->start };

    if (!defrag_is_free(request, shift, target) && !defrag_clear_place(shift, target))
        return false;
    while (!defrag_is_free(request, shift, target))
        if (!defrag_move_one_more(request, shift, target->gpu))
            return false;
    bh_shift_take(shift, request->need->job, &placement);
    return true;
}

static bool
defrag_is_cheaper(const struct bh_shift *a, const struct bh_shift *b)
{
    return a->cost != b->cost ? a->cost < b->cost : a->job_count < b->job_count;
}

/* Whether the GPU could serve at all. */
static bool
defrag_offers(const struct defrag_request *request, uint32_t slot)
{
    const struct bh_engine *engine = request->base.engine;
    const struct gpu *gpu = gpu_at(engine, slot);

    return bh_capacity_offered(engine, gpu)
           && bh_placement_serves(engine, gpu, request->need->tenant, sku_at(engine, request->need->sku),
                                  request->row);
}

/* Where the wanted partition is tried on the GPU, with the jobs that move away. */
static uint32_t
defrag_starts_on(const struct defrag_request *request, const struct bh_shift *shift, uint32_t gpu)
{
    struct bh_search search = request->base;

    if (!defrag_offers(request, gpu))
        return 0;
    bh_shift_imagine(shift, &search);
    return bh_capacity_starts(&search, gpu, sku_at(search.engine, request->need->sku)->profiles[request->row],
                              NULL, 0);
}

/* The cheapest place on the node for one more partition. */
static bool
defrag_add_place(const struct defrag_request *request, uint32_t node, struct bh_shift *shift)
{
    const struct bh_engine *engine = shift->engine;
    const struct sku *sku = sku_at(engine, request->need->sku);
    struct bh_shift best, next;
    bool found = false;

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu)) {
        for (uint32_t starts = defrag_starts_on(request, shift, gpu); starts; starts &= starts - 1) {
            struct defrag_target target = { gpu, sku->profiles[request->row],
                                            (uint32_t)__builtin_ctz(starts) };

            next = *shift;
            if (!defrag_make_free(request, &next, &target) || (found && !defrag_is_cheaper(&next, &best)))
                continue;
            best = next;
            found = true;
        }
    }
    if (found)
        *shift = best;
    return found;
}

/* Places for one member on a node. */
static bool
defrag_add_member(const struct defrag_request *request, uint32_t node, struct bh_shift *shift)
{
    const struct bh_engine *engine = shift->engine;

    if (!node_at(engine, node)->up
        || !(node_at(engine, node)->models >> sku_at(engine, request->need->sku)->models[request->row] & 1))
        return false;
    for (uint32_t i = 0; i < request->need->count; i++)
        if (!defrag_add_place(request, node, shift))
            return false;
    return true;
}

/* ---- all of it ---- */

/* Whether its placements would be free without one of the moves. */
static bool
defrag_is_needless(const struct defrag_request *request, const struct bh_shift *shift, uint32_t at)
{
    struct bh_search search = request->base;
    struct placement placements[BH_MOVE_PLACEMENTS_MAX];
    struct bh_shift less = *shift;

    for (uint32_t i = 0; i < shift->taking_count; i++)
        placements[i] = shift->taking[i].placement;
    bh_shift_drop(&less, at);
    less.taking_count = 0;
    bh_shift_imagine(&less, &search);
    return bh_placement_possible(&search, placements, shift->taking_count);
}

/* No job moves that need not, and all that move find other places. */
static bool
defrag_finish(struct defrag_request *request, struct bh_shift *shift)
{
    for (uint32_t i = shift->job_count; i-- > 0;)
        if (defrag_is_needless(request, shift, i))
            bh_shift_drop(shift, i);
    if (shift->job_count == 0 || request->settled == SETTLED_MOST)
        return false;
    request->settled++;
    return bh_shift_place(shift);
}

/* One partition on some GPU of the node: every place is tried to its end. */
static bool
defrag_find_for_partition(struct defrag_request *request, uint32_t node, const struct bh_shift *empty,
                          struct bh_shift *best, bool found)
{
    const struct bh_engine *engine = empty->engine;
    const struct sku *sku = sku_at(engine, request->need->sku);

    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        for (uint32_t starts = defrag_starts_on(request, empty, gpu); starts; starts &= starts - 1) {
            struct defrag_target target = { gpu, sku->profiles[request->row],
                                            (uint32_t)__builtin_ctz(starts) };
            struct bh_shift next = *empty;

            if (!defrag_make_free(request, &next, &target) || (found && !defrag_is_cheaper(&next, best))
                || !defrag_finish(request, &next))
                continue;
            *best = next;
            found = true;
        }
    return found;
}

/* One member on some node: the cheapest where all moved jobs find other placements. */
static bool
defrag_find_for_one(struct defrag_request *request, const struct bh_shift *empty, struct bh_shift *best,
                    bool found)
{
    for (uint32_t node = 0; bh_slot_next(request->base.engine, TABLE_NODE, &node);) {
        struct bh_shift next = *empty;

        if (request->need->count == 1) {
            found = defrag_find_for_partition(request, node, empty, best, found);
            continue;
        }
        if (!defrag_add_member(request, node, &next) || (found && !defrag_is_cheaper(&next, best))
            || !defrag_finish(request, &next))
            continue;
        *best = next;
        found = true;
    }
    return found;
}

/* One member after the other, each where it is cheapest. */
static bool
defrag_find_for_gang(struct defrag_request *request, const struct bh_shift *empty, struct bh_shift *best,
                     bool found)
{
    struct bh_shift shift = *empty;

    for (uint32_t member = 0; member < request->need->gang; member++) {
        struct bh_shift cheapest, next;
        bool any = false;

        for (uint32_t node = 0; bh_slot_next(request->base.engine, TABLE_NODE, &node);) {
            next = shift;
            if (!defrag_add_member(request, node, &next) || (any && !defrag_is_cheaper(&next, &cheapest)))
                continue;
            cheapest = next;
            any = true;
        }
        if (!any)
            return found;
        shift = cheapest;
    }
    if ((found && !defrag_is_cheaper(&shift, best)) || !defrag_finish(request, &shift))
        return found;
    *best = shift;
    return true;
}

static bool
defrag_find_shift(const struct bh_search *base, const struct bh_need *need, struct bh_shift *ret_shift)
{
    const struct bh_engine *engine = base->engine;
    const struct sku *sku = sku_at(engine, need->sku);
    struct bh_shift empty;
    bool found = false;

    bh_shift_init(&empty, engine);
    empty.for_job = need->job;
    empty.partitions = need->count * need->gang;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++)
        if (engine->core.claims[i].job == need->job)
            empty.past |= 1u << i;
    if (empty.partitions > BH_MOVE_PLACEMENTS_MAX)
        return false;
    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct defrag_request request = { .base = *base, .need = need, .row = row };
        struct bh_wanted wanted = bh_placement_wanted(engine, need, row);
        struct bh_reason why;
        uint32_t whose;

        if (base->closed >> sku->models[row] & 1 || !bh_placement_by(engine, need, row)
            || !bh_quota_allows(base, &wanted, &why, &whose))
            continue;
        found = need->gang == 1 ? defrag_find_for_one(&request, &empty, ret_shift, found)
                                : defrag_find_for_gang(&request, &empty, ret_shift, found);
    }
    return found;
}

/* ---- the pending job ---- */

/* What is gained when the job begins now. */
static bh_part_ns
defrag_gain_of(const struct bh_engine *engine, uint32_t slot, const struct bh_shift *shift)
{
    const struct job *job = job_at(engine, slot);
    uint64_t now_ns = engine->core.now_ns, sooner_ns = SOONER_NS;
    uint64_t runs_ns = job->time_limit_ns ? job->time_limit_ns : engine->core.settings.assumed_run_ns;
    uint64_t parts = 0;

    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->job == slot && claim->at_ns)
            sooner_ns = claim->at_ns > now_ns ? claim->at_ns - now_ns : 0;
    }
    for (uint32_t i = 0; i < shift->taking_count; i++)
        if (shift->taking[i].job == slot)
            parts += bh_quota_equivalent(shift->taking[i].placement.profile, 1);
    return (bh_part_ns)parts * (runs_ns < sooner_ns ? runs_ns : sooner_ns);
}

/* The class's first job for which no room is being made, or 0. */
static uint32_t
defrag_first_of(const struct bh_engine *engine, uint32_t class)
{
    uint32_t job = class_at(engine, class)->head;
    bool claimed = true;

    while (job && claimed) {
        claimed = false;
        for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++)
            claimed = claimed || (engine->core.claims[i].job == job && engine->core.claims[i].at_ns == 0);
        job = claimed ? job_at(engine, job)->next : job;
    }
    return job;
}

/* Moves so that a job of the class can begin. */
static bool
defrag_try_class(const struct bh_engine *engine, const struct bh_queue_entry *entry,
                 struct bh_defrag_plan *ret_plan)
{
    struct bh_need need = bh_placement_need(engine, entry->class);
    struct bh_search search, past;
    struct bh_shift shift;
    struct bh_plan plan;
    struct bh_reason why;

    need.job = defrag_first_of(engine, entry->class);
    if (!need.job || bh_usage_exhausted(engine, need.tenant, &why))
        return false;
    search = bh_reserve_search(engine, entry, need.job);
    past = search;
    past.past_leaving = true;
    if (bh_placement_find(&past, &need, &plan, NULL) || !defrag_find_shift(&search, &need, &shift))
        return false;
    ret_plan->capacity = bh_defrag_touched(&shift);
    return bh_shift_write(&shift, defrag_gain_of(engine, need.job, &shift), &ret_plan->move);
}

/* The candidate that comes next after another, or first of all (NULL). */
static bool
defrag_next_class(const struct bh_engine *engine, const struct bh_queue_entry *after,
                  struct bh_queue_entry *ret_next)
{
    bool found = false;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        struct bh_queue_entry entry;

        if (class_at(engine, slot)->hold)
            continue;
        bh_queue_entry_of_class(engine, slot, &entry);
        if ((after && !bh_queue_before(engine, after, &entry))
            || (found && !bh_queue_before(engine, &entry, ret_next)))
            continue;
        *ret_next = entry;
        found = true;
    }
    return found;
}

bool
bh_defrag_find(const struct bh_engine *engine, struct bh_defrag_plan *ret_plan)
{
    struct bh_queue_entry entry, next;
    bool any = defrag_next_class(engine, NULL, &next);

    if (engine->core.leaving || bh_move_left(engine, engine->core.now_ns).moves == 0)
        return false;
    for (uint32_t i = 0; any && i < WAITING_MOST; i++) {
        entry = next;
        if (defrag_try_class(engine, &entry, ret_plan))
            return true;
        any = defrag_next_class(engine, &entry, &next);
    }
    return bh_defrag_leave(engine, ret_plan) || bh_defrag_join(engine, ret_plan);
}

uint64_t
bh_defrag_token(const struct bh_ev_move *move)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ move->for_job.v;

    for (uint32_t i = 0; i < move->move_count; i++)
        hash = (hash * UINT64_C(0x100000001b3)) ^ move->moves[i].lease.v;
    for (uint32_t i = 0; i < move->placement_count; i++) {
        const struct bh_move_placement *placement = &move->placements[i];

        hash = (hash * UINT64_C(0x100000001b3)) ^ placement->gpu.v;
        hash = (hash * UINT64_C(0x100000001b3)) ^ (placement->profile << 8 | placement->start);
    }
    hash ^= hash >> 29;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ? hash : 1;
}
