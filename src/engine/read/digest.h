#ifndef BH_ENGINE_READ_DIGEST_H
#define BH_ENGINE_READ_DIGEST_H

#include <stddef.h>

#include "engine/state/caps.h"

/* Feed every live byte of state, in a canonical order that does not depend on the
 * capacities, to `put`: what the digest is computed over.  Slots
 * have no padding and free slots are zero, so the bytes of the used part of each table are
 * canonical as they stand. */
void bh_engine_digest(const struct bh_engine *engine,
                      void (*put)(void *self, const void *bytes, size_t length), void *self);

#endif
