#ifndef BH_ENGINE_STEP_ENGINE_H
#define BH_ENGINE_STEP_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/read/check.h"
#include "engine/read/digest.h"
#include "engine/state/caps.h"
#include "engine/state/outcome.h"
#include "engine/step/step.h"

/* The engine: a pure deterministic machine.
 *
 * bh_engine_step is the only way its state changes.  It reads no clock, draws no
 * random number, does no I/O, allocates nothing and uses no floating point.  All
 * state stands in one block of memory that the caller sized and owns; the block
 * has no pointers in it, so its bytes are the snapshot. */
/* Bytes a block of these capacities takes. */
size_t bh_engine_size(const struct bh_engine_caps *caps);

/* An empty engine in `memory` (bh_engine_size bytes, 16-byte aligned).  The memory
 * stays the caller's. */
struct bh_engine *bh_engine_init(void *memory, const struct bh_engine_caps *caps);

/* Copy an engine into a new block of larger or equal capacities. */
struct bh_engine *bh_engine_grow(const struct bh_engine *engine, void *memory,
                                 const struct bh_engine_caps *caps);

/* Check that `bytes` is a block that this build can use (magic, layout version,
 * length against the capacities in it) and return it; NULL otherwise. */
struct bh_engine *bh_engine_adopt(void *bytes, size_t length);

struct bh_engine_caps bh_engine_caps(const struct bh_engine *engine);

/* The present capacities with the table doubled that refused with BH_FULL last: what
 * to hand to bh_engine_size and bh_engine_grow. */
struct bh_engine_caps bh_engine_wanted(const struct bh_engine *engine);

#endif
