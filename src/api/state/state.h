#ifndef BH_API_STATE_STATE_H
#define BH_API_STATE_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/step/engine.h"
#include "ports/crypto.h"

/* The engine and the block of memory it lives in.  When a table is full the block is
 * replaced by one with that table doubled and the event is sent again: the engine
 * itself never allocates.  Owner thread only. */
struct bh_state {
    struct bh_engine *engine;
    void *block;
    size_t bytes;
};

/* An empty engine of the default size. */
void bh_state_init(struct bh_state *state);
void bh_state_fini(struct bh_state *state);

/* As bh_engine_step and bh_engine_replay, growing as needed; never BH_FULL. */
BH_MUST_USE bh_rc bh_state_step(struct bh_state *state, const struct bh_event *event, struct bh_step *step);
BH_MUST_USE bh_rc bh_state_replay(struct bh_state *state, const struct bh_event *event,
                                  const struct bh_decision *decisions, uint32_t count, struct bh_step *step);

/* Take over a copy of a block's bytes; BH_INVALID when this build cannot use it. */
BH_MUST_USE bh_rc bh_state_adopt(struct bh_state *state, const void *bytes, size_t length,
                                 struct bh_err *err);

/* A separate engine with the same state, to try something on; fini it. */
void bh_state_copy(const struct bh_state *state, struct bh_state *ret_copy);

/* The same from the bare engine, in one go over its memory: for the owner's thread.  The
 * copy may then belong to any thread. */
void bh_state_copy_engine(const struct bh_engine *engine, struct bh_state *ret_copy);

/* Into a bigger block, as the engine last wanted it. */
void bh_state_grow(struct bh_state *state);

/* What the record of a snapshot is about: its digest can be compared in the same layout alone.
 * Records from before layouts were named say "snapshot". */
enum { BH_SNAPSHOT_TYPE_SIZE = 16 };
void bh_state_snapshot_type(char ret_type[BH_SNAPSHOT_TYPE_SIZE]);

/* SHA-256 of the engine's digest bytes. */
void bh_state_digest(const struct bh_state *state, const struct bh_crypto_ops *crypto,
                     uint8_t ret_digest[32]);

#endif
