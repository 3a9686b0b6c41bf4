#ifndef BH_ENGINE_PREEMPT_H
#define BH_ENGINE_PREEMPT_H

#include "engine/place.h"

/* Making room for a job by having lower ones leave. */

/* For a need that finds no room: the claim on the cheapest room that strictly lower
 * jobs can make, if there is any. */
bool bh_preempt(struct work *work, const struct bh_need *need, struct bh_decision *ret_decision);

#endif
