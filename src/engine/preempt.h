#ifndef BH_ENGINE_PREEMPT_H
#define BH_ENGINE_PREEMPT_H

#include "engine/place.h"

/* Making room for a job by having others leave: those who cost least (engine/victim.h says
 * who may be asked, and what it costs), shown to be enough by imagining them gone, and all of
 * them needed. */

/* For a need that finds no room: a claim on the cheapest room that others
 * can make; those who leave are in the work, for bh_preempt_next. */
bool bh_preempt(struct work *work, const struct bh_search *search, const struct bh_need *need,
                struct bh_decision *ret_decision);

/* The same for a suspended lease (slot): its old places, and no others. */
bool bh_preempt_for_lease(struct work *work, const struct bh_search *search, uint32_t lease,
                          struct bh_decision *ret_decision);

/* The decision on the next of those who leave: suspended where their contract says
 * so and they run, else stopped. */
bool bh_preempt_next(struct work *work, struct bh_decision *ret_decision);

#endif
