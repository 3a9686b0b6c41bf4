#ifndef BH_ENGINE_STANDING_H
#define BH_ENGINE_STANDING_H

#include "engine/work_internal.h"

/* Which pieces shall stand ready on a GPU, as an operator declares it (`bulkhead layout`).
 *
 * Pieces that are missing are carved for nobody yet, like those of engine/shape.h, as soon as
 * no lease and no kept room is in their way; idle ones that are not wanted go while the change
 * is being made, and later only where they are in the way.  A piece in use is never touched.
 * Nothing is kept free for what is declared: a job that needs another shape may have it, and
 * when it is gone the declared one is made again.
 *
 * All GPUs of one change belong together: where a carve or a destroy for it fails, all of them
 * go back to what stood or was declared before. */

/* Declare it; `before` becomes what was declared, or else what stands. */
void bh_standing_set(struct work *work, const struct bh_ev_standing *standing);

/* BH_NOT_FOUND: no such GPU.  BH_RANGE: pieces that the GPU cannot hold together, or no mode,
 * or no number that follows. */
BH_MUST_USE bh_rc bh_standing_admit(const struct bh_engine *engine,
                                    const struct bh_ev_standing *standing,
                                    struct bh_reason *ret_why);

/* The next piece to clear or carve for what is declared. */
bool bh_standing_decide(const struct work *work, struct bh_decision *ret_decision);

/* Carry out a CLEAR.  BH_CONFLICT: it is no idle piece, or may not go now. */
BH_MUST_USE bh_rc bh_standing_clear(struct work *work, const struct bh_decision *decision);

/* Whether what is declared for the GPU names the piece. */
bool bh_standing_wants(const struct bh_engine *engine, uint32_t gpu,
                       const struct bh_piece *piece);

/* A piece for nobody could not be carved, or one destroyed.  False: it was not for what is
 * declared. */
bool bh_standing_failed(struct work *work, uint32_t part, uint32_t rc);

/* Something came to stand, or went: the change may be complete with it. */
void bh_standing_settle(struct bh_engine *engine, uint32_t gpu);

/* A tick has come; when the next one is needed, UINT64_MAX: not for this. */
void bh_standing_pass(struct bh_engine *engine);
uint64_t bh_standing_retry_ns(const struct bh_engine *engine);

/* For bh_engine_check: what is wrong, and on which GPU (id); NULL: nothing. */
const char *bh_standing_broken(const struct bh_engine *engine, uint64_t *ret_gpu);

#endif
