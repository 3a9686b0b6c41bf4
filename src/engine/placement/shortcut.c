#include "engine/placement/shortcut.h"

#include "base/assert.h"
#include "engine/gpu/host.h"
#include "engine/placement/placement_internal.h"
#include "engine/state/slots.h"

enum { LOOKS = 16 }; /* at GPUs of a group */

enum shortcut_answer { NOT_KNOWN, NO_CAPACITY, FOUND };

/* The best so far. */
struct best {
    struct bh_plan *plan;
    struct bh_score score;
    bool found;
};

static void
shortcut_prefer_better(struct best *best, const struct bh_assignment *assignments, uint32_t count,
                       uint32_t node, const struct bh_score *score)
{
    if (best->found && !bh_placement_better(score, &best->score))
        return;
    best->found = true;
    best->score = *score;
    best->plan->node = node;
    best->plan->count = count;
    for (uint32_t i = 0; i < count; i++)
        best->plan->assignments[i] = assignments[i];
}

/* ---- whole GPUs ---- */

/* The row of the SKU by which a node's whole GPUs serve. */
static uint32_t
shortcut_row_on(const struct bh_engine *engine, uint32_t sku_slot, uint32_t node)
{
    const struct sku *sku = sku_at(engine, sku_slot);
    uint32_t row = 0;

    while (!(node_at(engine, node)->models >> sku->models[row] & 1)
           || sku->profiles[row] != BH_PROFILE_WHOLE.v)
        row++;
    BH_ASSERT(row < sku->model_count);
    return row;
}

/* The best node that the index knows is the best one when the job finds room there, and its
 * GPUs close together, and nothing else speaks against the node. */
static enum shortcut_answer
shortcut_find_in_index(struct bh_engine *engine, const struct bh_search *search, const struct bh_need *need,
                       uint64_t models, struct best *best)
{
    struct bh_node_request want = bh_placement_whole(engine, need, 1, models);
    struct bh_score score = { 0 };
    struct bh_finder finder;
    struct bh_plan plan;
    uint32_t node, row;

    if (!bh_node_index_find(engine, &want, &node))
        return NOT_KNOWN;
    if (node == 0)
        return NO_CAPACITY;
    row = shortcut_row_on(engine, need->sku, node);
    finder = bh_finder_for(search, need, row);
    plan.count = 0;
    if (bh_placement_fill(&finder, node, 1, &plan, &score) == 0 || score.apart > 0 || score.hot
        || score.misfits || score.mixed)
        return NOT_KNOWN;
    score.parts = sku_at(engine, need->sku)->equivalents[row];
    shortcut_prefer_better(best, plan.assignments, plan.count, node, &score);
    return FOUND;
}

/* ---- partitions ---- */

/* What a partition costs at least; false: no GPU of the model has room for it. */
static bool
shortcut_least_growth(const struct bh_engine *engine, struct bh_finder *finder, int64_t *ret_growth)
{
    bool found = false;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU_GROUP, &slot);) {
        const struct gpu_group *group = gpu_group_at(engine, slot);
        const struct bh_candidate_starts *best;

        if (group->model != finder->model)
            continue;
        best = bh_candidates_find(&finder->starts, &group->occupancy);
        if (best->starts == 0 || (found && best->growth >= *ret_growth))
            continue;
        *ret_growth = best->growth;
        found = true;
    }
    return found;
}

/* A partition on the GPU, if it costs no more than that there and may stand there. */
static bool
shortcut_try_gpu(struct bh_finder *finder, uint32_t gpu, int64_t growth, struct best *best)
{
    static const struct bh_plan nothing;
    const struct bh_engine *engine = finder->search->engine;
    uint32_t node = gpu_at(engine, gpu)->node, beside;
    struct bh_score score;
    struct bh_assignment assignment;

    if (!bh_placement_offers(finder, gpu) || bh_placement_is_hot(engine, node)
        || !bh_placement_assign(finder, &nothing, gpu, &assignment, &score) || score.growth > growth
        || score.misfits || bh_placement_is_mixed(engine, node, finder->need->job))
        return false;
    score.nodes = 1;
    score.parts = sku_at(engine, finder->need->sku)->equivalents[finder->row];
    if (best->found && !bh_placement_better(&score, &best->score))
        return true;
    if (!bh_capacity_beside(finder->search, gpu, finder->profile, &beside)
        || !bh_capacity_on_node(finder->search, node, &beside) || bh_host_capacity(finder->search, node) == 0)
        return false;
    shortcut_prefer_better(best, &assignment, 1, node, &score);
    return true;
}

/* One partition on a GPU of the groups where that costs least. */
static enum shortcut_answer
shortcut_find_in_groups(const struct bh_engine *engine, struct bh_finder *finder, struct best *best)
{
    bool found = false;
    int64_t growth;

    bh_candidates_price(&finder->starts, engine, finder->model);
    if (!finder->starts.figures)
        return NOT_KNOWN; /* no groups of this model are kept */
    if (engine->core.shapes.unheld[finder->profile])
        return NOT_KNOWN; /* a partition stands ready, perhaps not among the first looked at */
    if (!shortcut_least_growth(engine, finder, &growth))
        return NO_CAPACITY;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU_GROUP, &slot);) {
        const struct gpu_group *group = gpu_group_at(engine, slot);
        const struct bh_candidate_starts *choice = bh_candidates_find(&finder->starts, &group->occupancy);
        uint32_t looks = 0;

        if (group->model != finder->model || choice->starts == 0 || choice->growth > growth)
            continue;
        for (uint32_t gpu = group->first; gpu && looks < LOOKS; looks++) {
            found = shortcut_try_gpu(finder, gpu, growth, best) || found;
            gpu = gpu_at(engine, gpu)->next_in_group;
        }
    }
    return found ? FOUND : NOT_KNOWN;
}

/* ---- rows ---- */

/* What is known of all rows of the SKU that the job may have. */
static enum shortcut_answer
shortcut_search(struct bh_engine *engine, const struct bh_search *search, const struct bh_need *need,
                struct best *best)
{
    const struct sku *sku = sku_at(engine, need->sku);
    uint64_t models = 0;

    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct bh_finder finder;
        struct bh_reason limit;

        if (!bh_placement_allowed(search, need, row, &limit))
            continue;
        if (sku->profiles[row] == BH_PROFILE_WHOLE.v) {
            models |= UINT64_C(1) << sku->models[row];
            continue;
        }
        if (bh_profile_is_share((bh_profile_id){ sku->profiles[row] }))
            return NOT_KNOWN; /* groups tell how GPUs are carved, not how they are shared */
        finder = bh_finder_for(search, need, row);
        if (need->count != 1 || shortcut_find_in_groups(engine, &finder, best) == NOT_KNOWN)
            return NOT_KNOWN;
    }
    if (best->found)
        return FOUND; /* a whole GPU blocks as much at least */
    if (models && shortcut_find_in_index(engine, search, need, models, best) == NOT_KNOWN)
        return NOT_KNOWN;
    return best->found ? FOUND : NO_CAPACITY;
}

bool
bh_shortcut_find(struct bh_engine *engine, const struct bh_search *search, const struct bh_need *need,
                 struct bh_plan *ret_plan)
{
    struct best best = { .plan = ret_plan };
    enum shortcut_answer answer = NOT_KNOWN;

    if (need->gang == 1 && !bh_placement_imagines(search) && !search->past_hosts)
        answer = shortcut_search(engine, search, need, &best);
    return answer == NOT_KNOWN ? bh_placement_find(search, need, ret_plan, NULL) : answer == FOUND;
}
