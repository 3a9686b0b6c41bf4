#include "engine/preempt/bound.h"

#include "base/assert.h"
#include "engine/placement/placement.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"

enum {
    GPUS_MAX = 32,
    WHOLE_VICTIM = 720720, /* divides by many numbers of partitions; rounded down by others */
};

/* The least cost of each GPU of a node, by component; each list is sorted by itself, the
 * cheapest first. */
struct figures {
    uint32_t count;
    uint64_t owed[GPUS_MAX], priority[GPUS_MAX], shares[GPUS_MAX], began_ns[GPUS_MAX];
    bh_part_ns lost[GPUS_MAX];
};

/* Of one GPU. */
struct bound_figure {
    struct bh_cost cost;
    uint64_t shares; /* victims, those with partitions elsewhere in part */
};

static const struct bound_figure nothing = {
    .cost = { .owed = UINT64_MAX, .began_ns = UINT64_MAX },
};

static uint64_t
bound_lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
bound_higher(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool
bound_is_claimed(const struct bh_search *search, uint64_t gpu_id)
{
    for (uint32_t i = 0; search->engine->core.claim_count && i < CLAIMS_MAX; i++) {
        const struct claim *claim = bh_capacity_claim(search, i);

        for (uint32_t k = 0; claim && k < claim->count; k++)
            if (claim->placements[k].gpu == gpu_id)
                return true;
    }
    return false;
}

static uint32_t
bound_partitions_of(const struct bh_engine *engine, uint32_t job)
{
    return bh_gang_live(engine, job) * job_at(engine, job)->count;
}

/* All that stands on the GPU must leave; of a job with partitions elsewhere the part here
 * counts, so that the sum over GPUs is no more than what is lost. */
static bool
bound_clear_whole(const struct bh_bound_request *request, uint32_t gpu, struct bound_figure *ret_figure)
{
    const struct bh_engine *engine = request->search->engine;

    *ret_figure = nothing;
    if (gpu_at(engine, gpu)->claimed
        && (request->claims_bind || bound_is_claimed(request->search, gpu_at(engine, gpu)->id)))
        return false;
    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at)) {
        uint32_t lease = partition_at(engine, at)->lease, job = lease_at(engine, lease)->job;
        struct bh_cost *sum = &ret_figure->cost, one;

        if (!lease || bh_capacity_is_gone(request->search, lease))
            continue;
        if (bh_capacity_is_futile(engine, gpu)
            || !bh_victim_eligible(request->preemptor, request->search, job))
            return false;
        one = bh_victim_cost(request->preemptor, request->search, job);
        sum->owed = bound_lower(sum->owed, one.owed);
        sum->priority = (uint32_t)bound_higher(sum->priority, one.priority);
        sum->lost += one.lost / bound_partitions_of(engine, job);
        sum->began_ns = bound_lower(sum->began_ns, one.began_ns);
        ret_figure->shares += WHOLE_VICTIM / bound_partitions_of(engine, job);
    }
    return true;
}

/* At least one of those on the GPU must leave, if the partition does not fit already. */
static bool
bound_clear_some(const struct bh_bound_request *request, uint32_t gpu, uint32_t profile,
                 struct bound_figure *ret_figure)
{
    const struct bh_engine *engine = request->search->engine;
    struct bh_cost *best = &ret_figure->cost;
    struct bh_occupancy occupancy;

    bh_capacity_occupancy(request->search, gpu, &occupancy);
    *ret_figure = nothing;
    if (bh_partition_capacity(&occupancy, (enum bh_gpu_model)gpu_at(engine, gpu)->model, profile) > 0)
        return true;
    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at)) {
        uint32_t lease = partition_at(engine, at)->lease, job = lease_at(engine, lease)->job;
        struct bh_cost one;

        if (!lease || bh_capacity_is_gone(request->search, lease) || bh_capacity_is_futile(engine, gpu)
            || !bh_victim_eligible(request->preemptor, request->search, job))
            continue;
        one = bh_victim_cost(request->preemptor, request->search, job);
        if (ret_figure->shares == 0)
            *best = one;
        best->owed = bound_higher(best->owed, one.owed);
        best->priority = (uint32_t)bound_lower(best->priority, one.priority);
        best->lost = one.lost < best->lost ? one.lost : best->lost;
        best->began_ns = bound_higher(best->began_ns, one.began_ns);
        ret_figure->shares = WHOLE_VICTIM;
    }
    return ret_figure->shares > 0;
}

static void
bound_insert(uint64_t *list, uint32_t count, uint64_t value)
{
    uint32_t at = count;

    for (; at > 0 && list[at - 1] > value; at--)
        list[at] = list[at - 1];
    list[at] = value;
}

static void
bound_insert_lost(bh_part_ns *list, uint32_t count, bh_part_ns value)
{
    uint32_t at = count;

    for (; at > 0 && list[at - 1] > value; at--)
        list[at] = list[at - 1];
    list[at] = value;
}

/* Where more is cheaper, the complement is kept. */
static void
bound_add_figure(struct figures *figures, const struct bound_figure *figure)
{
    bound_insert(figures->owed, figures->count, ~figure->cost.owed);
    bound_insert(figures->priority, figures->count, figure->cost.priority);
    bound_insert(figures->shares, figures->count, figure->shares);
    bound_insert(figures->began_ns, figures->count, ~figure->cost.began_ns);
    bound_insert_lost(figures->lost, figures->count, figure->cost.lost);
    figures->count++;
}

/* Several MIG partitions may stand on one GPU: then only the first is sure to cost so much. */
static struct bh_cost
bound_cheapest(const struct figures *figures, uint32_t partitions)
{
    struct bh_cost bound = { .owed = ~figures->owed[partitions - 1],
                             .priority = (uint32_t)figures->priority[partitions - 1],
                             .began_ns = ~figures->began_ns[partitions - 1],
                             .growth = INT64_MIN };
    uint64_t shares = 0;

    for (uint32_t i = 0; i < partitions; i++) {
        bound.lost += figures->lost[i];
        shares += figures->shares[i];
    }
    bound.victims = (uint32_t)((shares + WHOLE_VICTIM - 1) / WHOLE_VICTIM);
    return bound;
}

static bool
bound_is_offered(const struct bh_bound_request *request, uint32_t slot)
{
    const struct bh_engine *engine = request->search->engine;
    const struct gpu *gpu = gpu_at(engine, slot);

    return gpu->model == sku_at(engine, request->need->sku)->models[request->row]
           && !bh_avoids(request->need, gpu->id, gpu->node) && bh_capacity_offered(engine, gpu);
}

static bool
bound_wants_whole(const struct bh_bound_request *request)
{
    return sku_at(request->search->engine, request->need->sku)->profiles[request->row] == BH_PROFILE_WHOLE.v;
}

/* The figures of the node's GPUs; false where it has more than are looked at. */
static bool
bound_inspect(const struct bh_bound_request *request, uint32_t node, struct figures *ret_figures)
{
    const struct bh_engine *engine = request->search->engine;
    uint32_t profile = sku_at(engine, request->need->sku)->profiles[request->row];

    BH_ASSERT(request->search->gone_count == 0);
    ret_figures->count = 0;
    if (node_at(engine, node)->gpu_count > GPUS_MAX)
        return false;
    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu)) {
        struct bound_figure figure;

        if (bound_is_offered(request, gpu)
            && (bound_wants_whole(request) ? bound_clear_whole(request, gpu, &figure)
                                           : bound_clear_some(request, gpu, profile, &figure)))
            bound_add_figure(ret_figures, &figure);
    }
    return true;
}

uint32_t
bh_bound_members(const struct bh_bound_request *request, uint32_t node)
{
    struct figures figures;

    if (!node_at(request->search->engine, node)->up)
        return 0;
    if (!bound_inspect(request, node, &figures))
        return request->need->gang;
    if (bound_wants_whole(request))
        return figures.count / request->need->count;
    return figures.count ? request->need->gang : 0;
}

bool
bh_bound(const struct bh_bound_request *request, uint32_t node, struct bh_cost *ret_bound)
{
    uint32_t partitions = bound_wants_whole(request) ? request->need->count : 1;
    struct figures figures;

    *ret_bound = nothing.cost;
    ret_bound->growth = INT64_MIN;
    if (!bound_inspect(request, node, &figures))
        return true;
    if (figures.count < partitions)
        return false;
    *ret_bound = bound_cheapest(&figures, partitions);
    return true;
}
