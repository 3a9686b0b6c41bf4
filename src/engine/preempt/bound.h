#ifndef BH_ENGINE_PREEMPT_BOUND_H
#define BH_ENGINE_PREEMPT_BOUND_H

#include "engine/placement/placement.h"
#include "engine/preempt/victim.h"

/* What making room for one member on a node costs at least, without working out how: so that of a large
 * fleet only the few nodes are looked at closely that could be the cheapest. */

/* Room of one row of the SKU that is wanted. */
struct bh_bound_request {
    struct bh_preemptor *preemptor;
    const struct bh_search *search; /* none gone */
    const struct bh_need *need;
    uint32_t row;
    bool claims_bind; /* bh_capacity_claims_bind: spares a look at each */
};

/* Each component of the bound is, by itself, no dearer than that of any way to make room on
 * the node; so is the whole, compared as costs are.  False: there is no way. */
bool bh_bound(const struct bh_bound_request *request, uint32_t node, struct bh_cost *ret_bound);

/* How many members could fit on the node at most if all jobs left that may be asked. */
uint32_t bh_bound_members(const struct bh_bound_request *request, uint32_t node);

#endif
