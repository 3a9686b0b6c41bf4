#ifndef BH_ENGINE_PLACEMENT_PLACEMENT_INTERNAL_H
#define BH_ENGINE_PLACEMENT_PLACEMENT_INTERNAL_H

#include "engine/gpu/candidates.h"
#include "engine/gpu/node_index.h"
#include "engine/placement/placement.h"

/* The finder of places, for place.c, which looks at all nodes, and shortcut.c. */

struct bh_finder {
    const struct bh_search *search;
    const struct bh_need *need;
    uint32_t row, model, profile;
    uint32_t link, numa; /* only GPUs of this NVLink domain, NUMA node; 0: any */
    bool counts;         /* on this node no job is imagined gone: what is counted is true */
    bool claims_bind;    /* bh_capacity_claims_bind */
    struct bh_candidates starts;
    uint32_t beside; /* a job (slot) whose neighbourhood stood in the way */
    uint32_t beside_gpu;
    uint32_t alone, alone_gpu; /* a job (slot) beside which nothing may be carved there */
};

/* How good places are; less is better, in this order. */
struct bh_score {
    uint32_t nodes;
    uint32_t parts;         /* the least way to keep the SKU */
    uint32_t hot;           /* nodes of them that will be full soon, where that matters */
    uint32_t misfits;       /* partitions on GPUs that are kept for others, where that matters */
    uint32_t mixed;         /* nodes with jobs of the other kind, where that matters */
    int64_t growth;         /* what it costs jobs to come: engine/gpu/pool.h, engine/gpu/node_index.h */
    uint32_t apart;         /* whole GPUs of a member on several NVLink domains, NUMA nodes */
    uint32_t node;          /* whole GPUs: the first node (slot) */
    uint32_t carve, unused; /* must be carved; GPU holds nothing else */
    uint64_t gpu;
    uint32_t start;
};

/* For one row of the SKU. */
struct bh_finder bh_finder_for(const struct bh_search *search, const struct bh_need *need, uint32_t row);

/* Whether the job may have the row now: by its grade, as the models are closed to it, and by
 * the limits, of which it names the one that forbids it. */
bool bh_placement_allowed(const struct bh_search *search, const struct bh_need *need, uint32_t row,
                          struct bh_reason *ret_limit);

/* The best plan for the finder's row, with its score.  False: there is no room for all members. */
bool bh_placement_row(struct bh_finder *finder, struct bh_plan *ret_plan, struct bh_score *ret_score);

/* The places of a plan are many: copy those that are there. */
void bh_placement_copy(struct bh_plan *to, const struct bh_plan *from);

bool bh_placement_better(const struct bh_score *a, const struct bh_score *b);

/* Whether new work goes to the node last. */
bool bh_placement_is_hot(const struct bh_engine *engine, uint32_t node);

/* Whether the job (slot) is better kept off the node, where jobs of the other kind run. */
bool bh_placement_is_mixed(const struct bh_engine *engine, uint32_t node, uint32_t job);

/* Whether the search imagines some present jobs gone. */
bool bh_placement_imagines(const struct bh_search *search);

/* What so many members of the need take whole of a node. */
struct bh_node_request bh_placement_whole(const struct bh_engine *engine, const struct bh_need *need,
                                          uint32_t members, uint64_t models);

/* Whether the finder may look at the GPU at all. */
bool bh_placement_offers(struct bh_finder *finder, uint32_t gpu);

/* The best start on one GPU beside what the plan has there: of those that cost least, one
 * with an idle partition of the tenant, or of none, else the lowest.  Where something is declared
 * to stand, or nothing may be carved (engine/alone.h), a partition that stands ready goes first.
 * False: there is no room. */
bool bh_placement_assign(struct bh_finder *finder, const struct bh_plan *plan, uint32_t gpu,
                         struct bh_assignment *ret_assignment, struct bh_score *ret_score);

/* As many members as there is room for on a node, `most` at most, behind those that the
 * plan has; returns how many. */
uint32_t bh_placement_fill(struct bh_finder *finder, uint32_t node, uint32_t most, struct bh_plan *plan,
                           struct bh_score *ret_score);

#endif
