#ifndef BH_ENGINE_FORECAST_DEFRAG_H
#define BH_ENGINE_FORECAST_DEFRAG_H

#include "engine/step/engine.h"

/* Defragmentation: a plan of moves after which a pending job could begin, or free capacity is joined for
 * large jobs.  A pure search; engine/preempt/move.h says which jobs may be moved and what that costs, and
 * carries a plan out.
 *
 * For a pending job (the first in order that gains enough, of the first few): move the cheapest jobs whose
 * placements it could have and that all find other placements.  The gain is its GPU-equivalents times how
 * much sooner it begins, as far as its reservation says (an hour where it has none), and no longer than it
 * runs.
 *
 * For operators: move all jobs of a GPU that is cordoned (engine/forecast/defrag_leave.h).
 *
 * For capacity: move all jobs of one GPU, all of one node, or a single job, so that larger jobs could begin
 * (engine/forecast/defrag_join.h says how that is measured).  The gain is the growth of that capacity, times
 * an hour.  It grows with each such plan, so the plans come to an end.
 *
 * A plan is made only where the gain is worth the cost at the site's terms, and within the hour's budget. */

/* What could begin afterwards, beside or instead of the job that waits. */
struct bh_defrag_capacity {
    uint64_t before, after; /* parts, of the nodes that are touched */
};

struct bh_defrag_plan {
    struct bh_ev_move move; /* to be sent as it is */
    struct bh_defrag_capacity capacity;
    bh_gpu_id empties; /* the GPU, cordoned, that all this is for; 0: not for one */
};

/* The present plan.  False: there is none that is worth it, whatever the mode is; or jobs
 * are leaving already, and it shows soon what that brings. */
bool bh_defrag_find(const struct bh_engine *engine, struct bh_defrag_plan *ret_plan);

/* A name for what a plan does (never 0): the same jobs to the same places for the same
 * one. */
uint64_t bh_defrag_token(const struct bh_ev_move *move);

#endif
