#ifndef BH_ENGINE_READ_CHECK_H
#define BH_ENGINE_READ_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/state/caps.h"

/* Every invariant of the state, looked at from the outside: sums are taken anew and
 * compared with what the steps kept.  False: `ret_broken` says which, with the
 * ids involved, in at most `size` bytes. */
bool bh_engine_check(const struct bh_engine *engine, char *ret_broken, size_t size);

#endif
