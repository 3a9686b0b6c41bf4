#ifndef BH_ENGINE_PLACEMENT_PLACEMENT_H
#define BH_ENGINE_PLACEMENT_PLACEMENT_H

#include "engine/placement/guarantee.h"
#include "engine/placement/limit.h"

/* Where a job's partitions go: those of one member on one node, the members on as few nodes as
 * possible, all of one GPU model, each partition where the free part is broken up least; without
 * changing anything. */

struct bh_assignment {
    uint32_t gpu; /* slot */
    uint32_t profile, start;
    uint32_t reuse; /* an idle partition of the tenant, or of none, that stands there (slot), or 0 */
};

struct bh_plan {
    uint32_t node; /* slot: of the last member */
    uint32_t count;
    int64_t growth;                                          /* of fragmentation; set by bh_placement_on */
    struct bh_assignment assignments[BH_JOB_PARTITIONS_MAX]; /* member by member */
};

/* What is wanted, for a class. */
struct bh_need {
    uint32_t tenant, sku, job; /* slots */
    uint32_t count, gang;      /* partitions of each member, members */
    uint32_t avoid_gpu;        /* id, or 0 */
    uint32_t avoid_node;       /* slot, or 0 */
};

/* The need of a class's head. */
struct bh_need bh_placement_need(const struct bh_engine *engine, uint32_t class);

/* Whether it may be kept by that row of the SKU at all, by grade and form. */
bool bh_placement_by(const struct bh_engine *engine, const struct bh_need *need, uint32_t row);

/* What it would use, the SKU kept by one of its rows. */
struct bh_wanted bh_placement_wanted(const struct bh_engine *engine, const struct bh_need *need,
                                     uint32_t row);

/* Against which jobs guarantees cover it, on the row that they cover best. */
enum bh_cover bh_placement_cover(const struct bh_engine *engine, const struct bh_need *need);

/* The best plan for the need in the room that `search` sees.  False: there is none;
 * `ret_why`, where not NULL, says the nearest cause. */
bool bh_placement_find(const struct bh_search *search, const struct bh_need *need, struct bh_plan *ret_plan,
                       struct bh_reason *ret_why);

/* The best plan for one row of the SKU, limits aside, all on one node (slot; 0: anywhere),
 * with how much more broken up GPUs are. */
bool bh_placement_on(const struct bh_search *search, const struct bh_need *need, uint32_t row, uint32_t node,
                     struct bh_plan *ret_plan);

/* Whether exactly these places are free, and may be held. */
bool bh_placement_possible(const struct bh_search *search, const struct placement *placements,
                           uint32_t count);

/* Whether the place behind the first `count` is free together with them, and may be held. */
bool bh_placement_free(const struct bh_search *search, const struct placement *placements, uint32_t count);

/* Of that: whether its node has cores and memory for its member beside those before it. */
bool bh_placement_hosted(const struct bh_search *search, const struct placement *placements, uint32_t count);

/* A plan's places. */
void bh_placement_list(const struct bh_engine *engine, const struct bh_plan *plan,
                       struct placement ret_places[BH_JOB_PARTITIONS_MAX]);

/* Places as a plan, with the idle partitions that can be used again. */
bool bh_placement_plan(const struct bh_engine *engine, uint32_t tenant, const struct placement *placements,
                       uint32_t count, struct bh_plan *ret_plan);

/* Write a plan into a decision: idle partitions by number, others with new numbers. */
void bh_placement_decide(const struct bh_engine *engine, const struct bh_plan *plan,
                         struct bh_decision *ret_decision);

/* Whether the GPU is kept for partitions of another size, by the layout of its pool. */
bool bh_placement_misfits(const struct gpu *gpu, uint32_t profile);

/* Whether a GPU of this model may serve this profile to the tenant, by grade and form. */
bool bh_placement_serves(const struct bh_engine *engine, const struct gpu *gpu, uint32_t tenant,
                         const struct sku *sku, uint32_t row);

/* need.avoid_node: no node at all. */
#define BH_AVOID_ALL UINT32_MAX

static inline bool
bh_avoids(const struct bh_need *need, uint64_t gpu_id, uint32_t node)
{
    return gpu_id == need->avoid_gpu || node == need->avoid_node || need->avoid_node == BH_AVOID_ALL;
}

#endif
