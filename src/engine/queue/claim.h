#ifndef BH_ENGINE_QUEUE_CLAIM_H
#define BH_ENGINE_QUEUE_CLAIM_H

#include "engine/state/state_internal.h"

/* Room that is kept for a job (slot): claims and reservations. */

/* The room that is being made for the job, or that is reserved for it, or NULL. */
struct claim *bh_claim_of(struct bh_engine *engine, uint32_t job);
struct claim *bh_claim_reserved(struct bh_engine *engine, uint32_t job);

/* Whether room is being made for a job of the class (slot). */
bool bh_claim_of_class(const struct bh_engine *engine, uint32_t class);

/* Give up both; give up that one. */
void bh_claim_drop_all(struct bh_engine *engine, uint32_t job);
void bh_claim_drop(struct bh_engine *engine, struct claim *claim);

#endif
