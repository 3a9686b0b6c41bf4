#ifndef BH_ENGINE_STEP_STEP_H
#define BH_ENGINE_STEP_STEP_H

#include "base/err.h"
#include "engine/state/caps.h"
#include "engine/state/outcome.h"

/* Take one event: change the state, decide, and say what must be done.
 *
 * On any result but BH_OK nothing has changed and `step->verdict` says why:
 *   BH_NOT_FOUND  a tenant, SKU, job, lease or partition that the event names
 *   BH_CONFLICT   the (state, event) pair is not in the tables
 *   BH_RANGE      a quantity outside its range
 *   BH_QUOTA      SUBMIT that no limit would ever allow
 *   BH_FULL       a slot table is full: grow and send the event again */
BH_MUST_USE bh_rc bh_engine_step(struct bh_engine *engine, const struct bh_event *event,
                                 struct bh_step *step);

/* As bh_engine_step, but apply `decisions` as recorded instead of deciding.
 * BH_CONFLICT when they do not fit the state: the journal is damaged. */
BH_MUST_USE bh_rc bh_engine_replay(struct bh_engine *engine, const struct bh_event *event,
                                   const struct bh_decision *decisions, uint32_t count, struct bh_step *step);

/* Effects ordered but not yet answered, in order: sent again to a node that came
 * back.  Of all nodes for `node` 0.  Returns how many were written (at most `max`). */
uint32_t bh_engine_outstanding(const struct bh_engine *engine, bh_node_id node, struct bh_effect *ret_effects,
                               uint32_t max);

/* Whether `effect`, as a step brought it, is still not answered: one of those that
 * bh_engine_outstanding would list. */
bool bh_engine_awaits(const struct bh_engine *engine, const struct bh_effect *effect);

/* When the engine next wants a TICK (a time limit, a grace that ends), or
 * UINT64_MAX. */
uint64_t bh_engine_next_tick_ns(const struct bh_engine *engine);

#endif
