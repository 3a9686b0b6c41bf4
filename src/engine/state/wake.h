#ifndef BH_ENGINE_STATE_WAKE_H
#define BH_ENGINE_STATE_WAKE_H

#include "engine/state/state_internal.h"

/* What has changed for pending jobs, so that they are tried again.  Code that changes a row says so here; the
 * queue reads it. */

/* Forget what was found for the class. */
void bh_wake_class(struct bh_engine *engine, uint32_t class);

/* Something freed up that could help a waiting job. */
void bh_wake_queue(struct bh_engine *engine);

/* The tenant (slot) took capacity.  That helps no other, except through guarantees: capacity that was kept
 * back is in use now, or others of the tenant are no longer protected or no longer come first; or through a
 * reservation, when another tenant comes first now. */
void bh_wake_after_taking(struct bh_engine *engine, uint32_t tenant);

/* An event could help the jobs pending below the tenant (slot), by limits and guarantees, or by the jobs that
 * they could preempt; 0: of any tenant. */
void bh_wake_below(struct bh_engine *engine, uint32_t tenant);

/* A wake because of something from outside, or because a job ended: a job that has made
 * room as often as a job may, may do so again. */
void bh_wake_window(struct bh_engine *engine);

#endif
