#ifndef BH_ENGINE_FORECAST_DEFRAG_JOIN_H
#define BH_ENGINE_FORECAST_DEFRAG_JOIN_H

#include "engine/forecast/defrag.h"
#include "engine/forecast/defrag_shift.h"

/* What room for large jobs is worth at: it may be asked for within so long. */
#define BH_DEFRAG_JOIN_NS (UINT64_C(3600) * 1000000000)

/* What could begin on a node (slot), in parts: if the jobs to come are all of one size, what
 * of the node they could take; the mean over the sizes.  Sizes are those of the site's SKUs,
 * and of whole GPUs 1, 2, 4, 8... on one node.  At most what is free. */
uint64_t bh_defrag_potential(const struct bh_search *search, uint32_t node);

/* The same of all nodes that the shift touches, before and with it. */
struct bh_defrag_capacity bh_defrag_touched(const struct bh_shift *shift);

/* The plan that joins most room for what it costs. */
bool bh_defrag_join(const struct bh_engine *engine, struct bh_defrag_plan *ret_plan);

#endif
