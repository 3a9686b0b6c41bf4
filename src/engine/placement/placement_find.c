#include "engine/placement/placement.h"

#include "engine/gpu/gpu_form.h"
#include "engine/placement/placement_internal.h"
#include "engine/state/slots.h"

/* ---- what stands in the way ---- */

/* What stands beside the job's place and must not, as the finders met it. */
struct find_obstacle {
    uint32_t beside, gpu;
    uint32_t alone, alone_gpu;
};

static void
find_note_obstacle(struct find_obstacle *obstacle, const struct bh_finder *finder)
{
    if (finder->beside)
        obstacle->beside = finder->beside;
    if (finder->beside_gpu)
        obstacle->gpu = finder->beside_gpu;
    if (finder->alone_gpu) {
        obstacle->alone = finder->alone;
        obstacle->alone_gpu = finder->alone_gpu;
    }
}

/* Report the obstacle, if the present jobs were one. */
static void
find_report_obstacle(const struct bh_engine *engine, const struct find_obstacle *obstacle, uint32_t sku,
                     struct bh_reason *reason)
{
    bool boundary = obstacle->beside != 0;
    uint32_t gpu = boundary ? obstacle->gpu : obstacle->alone_gpu;
    uint32_t job = boundary ? obstacle->beside : obstacle->alone;

    if (!boundary && !gpu)
        return;
    *reason = (struct bh_reason){ .code = boundary ? BH_REASON_BOUNDARY : BH_REASON_REPARTITION,
                                  .sku = { (uint32_t)sku_at(engine, sku)->id },
                                  .gpu = { (uint32_t)gpu_at(engine, gpu)->id },
                                  .job = { job_at(engine, job)->id } };
}

/* ---- forms ---- */

/* The best plan of those found so far, of any form, and why others were not. */
struct choice {
    struct bh_plan *plan;
    bool found;
    uint32_t blocked; /* parts of GPUs on which nothing was, and that get a form by it */
    struct bh_reason limit;
    struct find_obstacle obstacle;
};

/* Forms that the same boundary calls for: of none, shares of any kind. */
static uint32_t
find_rank_of(const struct sku *sku, uint32_t row)
{
    enum bh_gpu_form form = bh_gpu_form_of((bh_profile_id){ sku->profiles[row] });

    return form == BH_GPU_FORM_MULTIPLEXED ? BH_GPU_FORM_SHARE : (uint32_t)form;
}

static bool
find_has_rank(const struct sku *sku, uint32_t rank)
{
    uint32_t shares = 1u << BH_GPU_FORM_MULTIPLEXED | 1u << BH_GPU_FORM_SHARE;

    return (sku->forms & (rank == BH_GPU_FORM_SHARE ? shares : 1u << rank)) != 0;
}

/* Whether the SKU has rows of stronger forms, too. */
static bool
find_has_stronger(const struct sku *sku, uint32_t rank)
{
    return sku->forms >> (rank + 1) != 0;
}

static bool
find_is_empty(const struct bh_search *search, uint32_t gpu)
{
    struct bh_occupancy occupancy;

    bh_capacity_occupancy(search, gpu, &occupancy);
    return occupancy.units == 0 && !occupancy.whole;
}

static bool
placement_find_is_known(const struct bh_plan *plan, uint32_t at)
{
    uint32_t i = 0;

    while (plan->assignments[i].gpu != plan->assignments[at].gpu)
        i++;
    return i < at;
}

/* A GPU on which nothing is takes any form: what is put there closes it to the others. */
static uint32_t
find_blocked_by(const struct bh_search *search, const struct bh_plan *plan)
{
    uint32_t blocked = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        if (!placement_find_is_known(plan, i) && find_is_empty(search, plan->assignments[i].gpu))
            blocked += BH_GPU_PARTS;
    return blocked;
}

/* The best plan of one rank. */
static bool
find_in_rank(const struct bh_search *search, const struct bh_need *need, uint32_t rank, struct bh_plan *best,
             struct choice *choice)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    struct bh_score score, best_score;
    struct bh_plan plan;
    bool found = false;

    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct bh_finder finder;

        if (find_rank_of(sku, row) != rank || !bh_placement_allowed(search, need, row, &choice->limit))
            continue;
        finder = bh_finder_for(search, need, row);
        if (bh_placement_row(&finder, &plan, &score)
            && (!found || bh_placement_better(&score, &best_score))) {
            bh_placement_copy(best, &plan);
            best_score = score;
            found = true;
        }
        find_note_obstacle(&choice->obstacle, &finder);
    }
    return found;
}

/* Keep the best of the rank where it blocks less than what was found of weaker ones. */
static void
find_try_rank(const struct bh_search *search, const struct bh_need *need, uint32_t rank,
              struct choice *choice)
{
    bool alone = !choice->found && !find_has_stronger(sku_at(search->engine, need->sku), rank);
    struct bh_plan plan;
    uint32_t blocked;

    if (!find_in_rank(search, need, rank, choice->found ? &plan : choice->plan, choice))
        return;
    blocked = alone ? 0 : find_blocked_by(search, choice->found ? &plan : choice->plan);
    if (choice->found && blocked >= choice->blocked)
        return;
    if (choice->found)
        bh_placement_copy(choice->plan, &plan);
    choice->found = true;
    choice->blocked = blocked;
}

/* The weakest form that is allowed goes first: what the tenant's boundary calls for, or the
 * next that the SKU offers. */
bool
bh_placement_find(const struct bh_search *search, const struct bh_need *need, struct bh_plan *ret_plan,
                  struct bh_reason *ret_why)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    struct choice choice = { .plan = ret_plan };

    for (uint32_t rank = BH_GPU_FORM_SHARE; rank < BH_GPU_FORMS; rank++)
        if (find_has_rank(sku, rank) && (!choice.found || choice.blocked > 0))
            find_try_rank(search, need, rank, &choice);
    if (choice.found || !ret_why)
        return choice.found;
    *ret_why = choice.limit;
    find_report_obstacle(search->engine, &choice.obstacle, need->sku, ret_why);
    return false;
}
