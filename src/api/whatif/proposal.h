#ifndef BH_API_WHATIF_PROPOSAL_H
#define BH_API_WHATIF_PROPOSAL_H

#include "api/state/simulation.h"
#include "engine/forecast/defrag_judge.h"
#include "engine/read/view.h"

/* How often a site with defrag: on looks for a plan. */
#define BH_PROPOSAL_EVERY_NS (UINT64_C(60) * 1000000000)

/* The present plan of moves, played on a copy before it is shown. */
struct bh_proposal {
    struct bh_ev_settings settings;
    struct bh_move_left_view left; /* of this hour's budget */
    bool found;                    /* there is a plan by the site's terms */
    struct bh_defrag_plan plan;
    uint64_t token; /* names it */
    struct bh_defrag_verdict verdict;
    bool complete;                /* both futures were played to their end */
    struct bh_simulation present; /* the copy, before the plan: to name things by */
};

/* Find the plan of a copy of the engine (taken, and not begun) at that time and play it.
 * Takes the copy over; to be freed.  Any thread.  With the mode off nothing is looked for. */
void bh_proposal_make(struct bh_simulation *taken, uint64_t now_ns, struct bh_proposal *ret_proposal);
void bh_proposal_free(struct bh_proposal *proposal);
static inline void
bh_proposal_free_auto(struct bh_proposal *proposal)
{
    bh_proposal_free(proposal);
}

/* Whether it is to be carried out: found, and the simulation bears it out. */
bool bh_proposal_holds(const struct bh_proposal *proposal);

#endif
