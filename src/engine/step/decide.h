#ifndef BH_ENGINE_STEP_DECIDE_H
#define BH_ENGINE_STEP_DECIDE_H

#include "engine/state/work_internal.h"

/* The next decision that the state calls for: leases that must end, then room for
 * the first candidate that can be helped.  False when there is none.  Changes hints
 * only.  `tick`: time limits are looked at. */
bool bh_decide(struct work *work, bool tick, struct bh_decision *ret_decision);

/* The most effects that applying the decision can cause. */
uint32_t bh_decide_effects(const struct bh_engine *engine, const struct bh_decision *decision);

/* Whether more decisions must follow in the same record. */
bool bh_decide_begun(const struct work *work);

/* How many decisions stand in one record with this one, itself counted, with how many
 * partitions, and the most effects that they can cause. */
struct bh_record_needs {
    uint32_t decisions, partitions, effects;
};
struct bh_record_needs bh_decide_record(const struct work *work, const struct bh_decision *decision);

/* Whether there could be anything to decide. */
bool bh_decide_due(struct bh_engine *engine);

#endif
